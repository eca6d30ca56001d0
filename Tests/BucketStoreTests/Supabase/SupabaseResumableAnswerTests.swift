import Platform
import TestSupport
import Testing

@testable import BucketStore

/// What single answers of the server to an upload in parts come to.
@Suite struct SupabaseResumableAnswerTests {
  private static func text(_ status: Int, _ text: String, _ headers: [String: String] = [:])
    -> HTTPResponse
  {
    HTTPResponse(
      status: status,
      headers: headers.merging(["content-type": "text/plain"]) { own, _ in own },
      body: Array(text.utf8))
  }

  private static func offset(_ offset: Int64, _ status: Int = 204) -> HTTPResponse {
    text(status, "", ["upload-offset": String(offset)])
  }

  private static let size: Int64 = 8 << 20

  private let request = PutRequest(
    object: ObjectName(bucket: "docs", key: "a"), size: size, contentType: "text/plain",
    userMetadata: [:], condition: .none)

  private func go(_ transport: ScriptedTransport) throws -> StoreError.Kind? {
    let store = try SupabaseStore.scripted(transport)
    return kind { () throws(StoreError) in
      try store.continueUpload(
        UploadToken("abc"), request, from: BytesSource([]), progress: { _ in }, Call())
    }
  }

  @Test(
    arguments: [
      (400, "Invalid key: ü", .keyRefused), (400, "Bucket name invalid", .keyRefused),
      (400, "Request aborted due to lock acquired", .server),
      (400, "Invalid upload-offset\n", .unsupported),
      (403, "new row violates row-level security policy", .refused),
      (403, "Upload-Offset header required\n", .unsupported),
      (404, "Bucket not found", .notFound),
      (404, "The file for this url was not found\n", .notFound),
      (404, "<html>not here</html>", .server), (409, "The resource already exists", .exists),
      (410, "The file for this url no longer exists\n", .notFound),
      (412, "Tus-Resumable Required\n", .unsupported), (413, "Maximum size exceeded\n", .tooLarge),
      (415, "mime type x/y is not supported", .typeRefused), (423, "locked", .server),
      (429, "slow down", .throttled), (500, "Something went wrong with that request\n", .server),
      (501, "no", .unsupported), (503, "acquiring lock timeout", .server),
      (502, "<html>bad gateway</html>", .server), (200, "<html>sign in</html>", .server),
    ] as [(Int, String, StoreError.Kind)])
  func anAnswerToAPartHasItsKind(status: Int, text: String, expected: StoreError.Kind) throws {
    let found = try go(
      ScriptedTransport { request, _ in
        switch request.method {
        case "HEAD": .success(Self.offset(0, 200))
        case "GET": .success(.failure(400, "404", "not_found", "Object not found"))
        default: .success(Self.text(status, text))
        }
      })
    #expect(found == expected)
  }

  @Test func anOffsetThatIsStaleIsAskedForAgain() throws {
    let transport = ScriptedTransport { _, index in
      switch index {
      case 0: .success(Self.offset(0, 200))
      case 1: .success(Self.text(409, "Upload-Offset conflict\n"))
      case 2: .success(Self.offset(5 << 20, 200))
      default: .success(Self.offset(Self.size))
      }
    }
    #expect(try go(transport) == nil)
    #expect(transport.sent.map(\.method) == ["HEAD", "PATCH", "HEAD", "PATCH"])
    #expect(transport.sent.last?.header("Upload-Offset") == String(5 << 20))
  }

  @Test func anOffsetThatStaysStaleEnds() throws {
    let transport = ScriptedTransport { request, _ in
      .success(
        request.method == "HEAD"
          ? Self.offset(0, 200) : Self.text(409, "Upload-Offset conflict\n"))
    }
    #expect(try go(transport) == .server)
    #expect(transport.sent.count == 6)
  }

  @Test(arguments: [-1, 0, 6 << 20 + 1, 8 << 20] as [Int64])
  func anOffsetOutsideThePartIsNoAnswer(offset: Int64) throws {
    let transport = ScriptedTransport { request, _ in
      .success(request.method == "HEAD" ? Self.offset(0, 200) : Self.offset(offset))
    }
    #expect(try go(transport) == .server)
  }

  @Test func anUploadOfAnotherSizeIsNotGoneOnWith() throws {
    let transport = ScriptedTransport { _, _ in
      .success(Self.text(200, "", ["upload-offset": "0", "upload-length": "7"]))
    }
    #expect(try go(transport) == .notFound)
    #expect(transport.sent.count == 1)
  }

  @Test(
    arguments: [
      ("https://other.example/storage/v1/upload/resumable/ZG9j-cw_A=", "ZG9j-cw_A="),
      ("/upload/resumable/abc?x=y", "abc"), ("abc#z", "abc"),
      ("https://other.example/upload/", nil), ("http://x/..", nil), ("http://x/a b", nil),
      ("", nil),
    ] as [(String, String?)])
  func ofALocationOnlyTheLastSegmentCounts(location: String, expected: String?) throws {
    let transport = ScriptedTransport { request, _ in
      .success(
        request.method == "POST"
          ? Self.text(201, "", ["location": location]) : Self.offset(Self.size, 200))
    }
    let store = try SupabaseStore.scripted(transport)
    var token: UploadToken?
    let found = kind { () throws(StoreError) in token = try store.beginUpload(request, Call()) }
    #expect(token?.text == expected)
    #expect(found == (expected == nil ? .server : nil))
    guard let token else { return }
    try store.abandonUpload(token, request, Call())
    #expect(
      transport.sent.last?.url
        == "https://ref.supabase.co/storage/v1/upload/resumable/" + token.text)
  }

  @Test func aTokenThatIsNoSegmentIsNeverSent() throws {
    let transport = ScriptedTransport { _, _ in .success(Self.offset(0, 200)) }
    let store = try SupabaseStore.scripted(transport)
    for text in ["", "a/b", "..", "a?b", "a b", "ü"] {
      let found = kind { () throws(StoreError) in
        try store.continueUpload(
          UploadToken(text), request, from: BytesSource([]), progress: { _ in }, Call())
      }
      #expect(found == .notFound)
    }
    #expect(transport.sent.isEmpty)
  }
}
