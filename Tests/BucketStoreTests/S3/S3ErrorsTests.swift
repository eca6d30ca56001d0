import Platform
import TestSupport
import Testing

@testable import BucketStore

/// What answers are taken for: the table of errors, and the reading of XML.
@Suite struct S3ErrorsTests {
  private func response(_ status: Int, _ body: String) -> HTTPResponse {
    HTTPResponse(status: status, headers: [:], body: Array(body.utf8))
  }

  private func kind(_ status: Int, _ code: String, reading: Bool = true) -> StoreError.Kind {
    let body = "<?xml version=\"1.0\"?><Error><Code>\(code)</Code><Message>m</Message></Error>"
    return S3Errors.error(on: response(status, body), reading: reading).kind
  }

  @Test func theStoresNamesOfErrorsDecide() {
    #expect(kind(404, "NoSuchKey") == .notFound)
    #expect(kind(404, "NoSuchBucket") == .notFound)
    #expect(kind(403, "AccessDenied") == .refused)
    #expect(kind(400, "ExpiredToken") == .sessionExpired)
    #expect(kind(503, "SlowDown") == .throttled)
    #expect(kind(500, "InternalError") == .server)
    #expect(kind(412, "PreconditionFailed") == .conflict)
    #expect(kind(409, "OperationAborted") == .server)
    #expect(kind(416, "InvalidRange") == .damaged)
    #expect(kind(400, "BadDigest") == .damaged)
    #expect(kind(400, "EntityTooLarge") == .tooLarge)
    #expect(kind(400, "KeyTooLongError", reading: false) == .keyRefused)
    #expect(kind(400, "KeyTooLongError", reading: true) == .notFound)
    #expect(kind(501, "NotImplemented") == .unsupported)
    #expect(kind(418, "Teapot") == .server)
  }

  @Test func aConditionalRequestThatIsUnderWayIsNoConflict() {
    #expect(kind(409, "ConditionalRequestConflict", reading: false) == .server)
    #expect(kind(409, "Unheard", reading: false) == .server)
    #expect(kind(409, "BucketAlreadyExists", reading: false) == .exists)
  }

  @Test func aPageThatIsNotTheStoresSaysNothingOfAnObject() {
    for body in ["<html><body>Sign in</body></html>", "", "not found", "{\"error\":1}"] {
      let error = S3Errors.error(on: response(404, body), reading: true)
      #expect(error.kind == .server, "\(body)")
    }
  }

  @Test func theServersWordsAreToldInOneLine() {
    let body = "<Error><Code>AccessDenied</Code><Message>a\nb\u{7F}&lt;</Message></Error>"
    let error = S3Errors.error(on: response(403, body), reading: true)
    #expect(error.message == "the store says: a b < (AccessDenied)")
  }

  @Test func entitiesOfADocumentAreNotExpanded() {
    let bomb = """
      <?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaaaaaa"><!ENTITY b "&a;&a;&a;">]>
      <Error><Code>&b;</Code></Error>
      """
    var taken: [[String]] = []
    #expect(!XMLReader.read(Array(bomb.utf8)) { path, _ in taken.append(path) })
    #expect(taken.isEmpty)
  }

  @Test func deepDocumentsEndEarly() {
    let deep = String(repeating: "<a>", count: 1000) + String(repeating: "</a>", count: 1000)
    #expect(!XMLReader.read(Array(deep.utf8)) { _, _ in })
    let flat = String(repeating: "<a>", count: 30) + String(repeating: "</a>", count: 30)
    #expect(XMLReader.read(Array(flat.utf8)) { _, _ in })
  }

  @Test func namespacesAndSplitTextMakeNoDifference() {
    var texts: [String] = []
    let document = "<s:R xmlns:s=\"x\"><s:K>a&amp;b&#252;</s:K><K/></s:R>"
    let isRead = XMLReader.read(Array(document.utf8)) { path, bytes in
      texts.append(path.joined(separator: ".") + "=" + String(decoding: bytes, as: UTF8.self))
    }
    #expect(isRead)
    #expect(texts == ["R.K=a&bü", "R.K=", "R="])
  }

  @Test func anyBytesAreReadOrRefused() {
    var random = SeededGenerator(seed: 5)
    let pieces = ["<", ">", "/", "Error", "Code", "&", ";", "\"", "ü", "<?", "<![CDATA[", "]]>"]
    var read = 0
    for _ in 0..<2000 {
      var document: [UInt8] = Array("<Error>".utf8)
      for _ in 0..<Int.random(in: 0..<12, using: &random) {
        document += Array(pieces[Int.random(in: 0..<pieces.count, using: &random)].utf8)
      }
      document += Array("</Error>".utf8)
      if S3Errors.Body(document) != nil { read += 1 }
    }
    #expect(read > 0)
  }

  @Test func metadataIsWrittenInAsciiAndReadBack() throws {
    let metadata = [
      "mtime": "1577836800.123456789", "note": "Grüße 灯", "spaces": "  a  b ", "like": "=?x?=",
      "plain": "ab=&%", "empty": "",
    ]
    let headers = try S3Metadata.headers(metadata)
    #expect(headers.allSatisfy { $0.value.utf8.allSatisfy { (32..<127).contains($0) } })
    #expect(
      headers.contains { $0.name == "x-amz-meta-mtime" && $0.value == "1577836800.123456789" })
    var received: [String: String] = ["content-type": "x/y"]
    for header in headers { received[header.name] = header.value }
    #expect(S3Metadata.metadata(received) == metadata)
    #expect(
      S3Metadata.metadata(["x-amz-meta-a": "=?UTF-8?Q?Gr=C3=BC=C3=9Fe_b?="]) == ["a": "Grüße b"])
    #expect(throws: StoreError.self) { try S3Metadata.headers(["a b": "x"]) }
    #expect(throws: StoreError.self) {
      try S3Metadata.headers(["a": String(repeating: "x", count: 3000)])
    }
  }
}
