import Platform
import TestSupport
import Testing

@testable import BucketStore

@Suite struct SupabaseJSONTests {
  private static let page = #"""
    {"hasNext":true,"nextCursor":"bDpkb2NzL2EudHh0","nextCursorKey":"docs/a.txt",
     "folders":[{"id":null,"name":"docs/sub/","key":"sub","updated_at":null,"metadata":null}],
     "objects":[{"id":"1","name":"docs/a.txt","key":"a.txt","updated_at":"2026-04-27T10:30:57.123Z",
       "created_at":"x","last_accessed_at":"x","metadata":{"eTag":"\"5eb6\"","size":11,
       "mimetype":"text/plain","cacheControl":"no-cache","lastModified":"2026-04-27T10:30:57.000Z",
       "contentLength":11,"httpStatusCode":200}},
      {"id":"2","name":"docs/by hand","updated_at":"2026-04-27T10:30:57.123Z","metadata":null},
      {"id":"3","name":"docs/\u00fc\ud83d\ude00","metadata":{"size":-1,"eTag":"W/\"a\""}}]}
    """#

  @Test func aPageIsReadWithItsGapsAndOddities() throws {
    let page = try SupabaseJSON.decode(SupabaseJSON.Page.self, from: .json(200, Self.page))
    #expect(page.hasNext)
    #expect(page.nextCursor == "bDpkb2NzL2EudHh0")
    #expect(page.folders.map(\.name) == ["docs/sub/"])
    let infos = page.objects.map { $0.info(ByteString($0.name)) }
    #expect(
      infos[0]
        == ObjectInfo(
          key: "docs/a.txt", size: 11, tag: "\"5eb6\"",
          modified: Timestamp(nanoseconds: 1_777_285_857_123_000_000), contentType: "text/plain"))
    #expect(infos[1].size == nil && infos[1].tag == nil && infos[1].modified != nil)
    #expect(infos[2].key == "docs/ü😀" && infos[2].size == nil && infos[2].tag == "\"a\"")
  }

  @Test(arguments: [
    "", "null", "[]", "{}", "<html></html>", #"{"hasNext":true}"#,
    #"{"hasNext":"yes","folders":[],"objects":[]}"#,
    #"{"hasNext":true,"folders":[{}],"objects":[]}"#,
    #"{"hasNext":true,"folders":[],"objects":[{"id":"1"}]}"#,
    #"{"hasNext":true,"folders":[],"objects":[{"name":"a","metadata":{"size":1e300}}]}"#,
    #"{"hasNext":true,"folders":[],"objects":[{"name":"a","metadata":{"size":"1"}}]}"#,
  ])
  func whatIsNoPageIsTheServersFault(body: String) {
    let result = kind { () throws(StoreError) in
      _ = try SupabaseJSON.decode(SupabaseJSON.Page.self, from: .json(200, body))
    }
    #expect(result == .server)
  }

  @Test func userMetadataOfAnyShapeBecomesTexts() throws {
    let info = try SupabaseJSON.decode(
      SupabaseJSON.Info.self,
      from: .json(
        200,
        #"""
        {"name":"a","size":null,"metadata":{"mtime":"1756000000","n":5,"f":1.5,"b":true,
         "list":[1],"null":null,"object":{"x":1}}}
        """#))
    #expect(
      info.metadata?.texts == ["mtime": "1756000000", "n": "5", "f": "1.5", "b": "true"])
    #expect(info.size == nil)
  }

  @Test func damagedBodiesNeverTrap() throws {
    var random = SeededGenerator(seed: 5)
    var read = 0
    for round in 0..<3_000 {
      var body = Array(Self.page.utf8)
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        let place = Int.random(in: 0..<body.count, using: &random)
        switch Int.random(in: 0..<3, using: &random) {
        case 0: body[place] = .random(in: 0...255, using: &random)
        case 1: body.remove(at: place)
        default: body.insert(contentsOf: random.awkwardBytes(upTo: 4).bytes, at: place)
        }
      }
      if round % 10 == 0 {
        body = Array(body.prefix(Int.random(in: 0...body.count, using: &random)))
      }
      let answer = HTTPResponse(status: 200, headers: [:], body: body)
      do throws(StoreError) {
        let page = try SupabaseJSON.decode(SupabaseJSON.Page.self, from: answer)
        _ = page.objects.map { $0.info(ByteString($0.name)) }
        read += 1
      } catch {
        #expect(error.kind == .server)
      }
    }
    #expect((1..<3_000).contains(read))
  }

  @Test func cursorsComeBackAndForeignOnesAreRefused() throws {
    for cursor in [
      SupabaseCursor(server: "bDpkb2Nz+/==", covered: nil),
      SupabaseCursor(server: "a b%", covered: .init(after: "docs/a b%\u{fc}")),
      SupabaseCursor(server: "", covered: .init(after: "")),
    ] {
      #expect(try SupabaseCursor(cursor.cursor) == cursor)
    }
    for text in ["a b c", "%", "a %zz", "%ff"] {
      #expect(
        kind { () throws(StoreError) in _ = try SupabaseCursor(ListCursor(text)) } == .server)
    }
  }
}
