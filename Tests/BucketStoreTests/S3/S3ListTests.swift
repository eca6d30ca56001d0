import BucketStore
import Platform
import TestSupport
import Testing

/// Listings: how many requests they take, and what servers answer that others do not.
@Suite struct S3ListTests {
  /// A bucket of numbered keys, listed as S3 does it.
  private final class NumberedBucket: HTTPTransport {
    let count: Int
    let givesTokens: Bool
    let isOrdered: Bool
    private let asked = Locked(0)

    init(_ count: Int, givesTokens: Bool = true, isOrdered: Bool = true) {
      self.count = count
      self.givesTokens = givesTokens
      self.isOrdered = isOrdered
    }

    var requests: Int { asked.withLock { $0 } }

    func perform(_ request: HTTPRequest, into sink: (any HTTPSink)?, _ call: Call)
      throws(StoreError) -> HTTPResponse
    {
      asked.withLock { $0 += 1 }
      var start = 0
      let query = request.url.split(separator: "?").last ?? ""
      for item in query.split(separator: "&") {
        let parts = item.split(separator: "=")
        guard parts.count == 2 else { continue }
        if parts[0] == "continuation-token" { start = Int(parts[1].dropFirst(7)) ?? -1 }
        if parts[0] == "start-after" { start = (Int(parts[1].suffix(6)) ?? -1) + 1 }
      }
      let end = min(start + 1000, count)
      var body = "<?xml version=\"1.0\"?><ListBucketResult xmlns=\"\(Self.namespace)\">"
      body += "<EncodingType>url</EncodingType><IsTruncated>\(end < count)</IsTruncated>"
      if givesTokens, end < count {
        body += "<NextContinuationToken>a/+\(end)</NextContinuationToken>"
      }
      for number in isOrdered ? Array(start..<end) : (start..<end).reversed() {
        body += "<Contents><Key>many/a+%2B\(Self.key(number))</Key><Size>\(number)</Size>"
        body += "<ETag>&quot;e\(number)&quot;</ETag>"
        body += "<LastModified>2026-01-02T03:04:05.000Z</LastModified></Contents>"
      }
      return HTTPResponse(
        status: 200, headers: [:], body: Array((body + "</ListBucketResult>").utf8))
    }

    private static let namespace = "http://s3.amazonaws.com/doc/2006-03-01/"

    private static func key(_ number: Int) -> String {
      let digits = String(number)
      return String(repeating: "0", count: 6 - digits.count) + digits
    }
  }

  private func store(_ transport: any HTTPTransport) throws -> S3Store {
    S3Store(
      address: try S3Address(endpoint: "http://127.0.0.1:9"),
      credentials: { S3Credentials(accessKey: "A", secretKey: "S") }, transport: transport)
  }

  private func keys(_ store: S3Store, delimited: Bool) throws -> [ByteString] {
    var request = ListRequest(bucket: "bucket", prefix: "many/", delimited: delimited)
    var keys: [ByteString] = []
    repeat {
      let page = try store.list(request, Call())
      keys += page.objects.map(\.key)
      request.cursor = page.next
    } while request.cursor != nil
    return keys
  }

  @Test(arguments: [true, false], [true, false])
  func aHundredThousandKeysTakeAHundredRequests(delimited: Bool, givesTokens: Bool) throws {
    let bucket = NumberedBucket(100_000, givesTokens: givesTokens)
    let keys = try keys(store(bucket), delimited: delimited)
    #expect(keys.count == 100_000)
    #expect(keys.first == "many/a +000000")
    #expect(keys.last == "many/a +099999")
    #expect(keys == keys.sorted())
    #expect(bucket.requests <= 102)
  }

  @Test func aServerWithAnOrderOfItsOwnHasNoFlatListings() throws {
    let store = try store(NumberedBucket(10, isOrdered: false))
    #expect(store.capabilities.flatListing)
    #expect(throws: StoreError.self) { try keys(store, delimited: false) }
    #expect(!store.capabilities.flatListing)
    #expect(try keys(store, delimited: true).count == 10)
  }

  @Test(arguments: ["", "<html/>", "<ListBucketResult>", "{}"])
  func whatIsNoListingIsNotTakenForAnEmptyOne(body: String) throws {
    struct Page: HTTPTransport {
      let body: String

      func perform(_ request: HTTPRequest, into sink: (any HTTPSink)?, _ call: Call)
        throws(StoreError) -> HTTPResponse
      {
        HTTPResponse(status: 200, headers: [:], body: Array(body.utf8))
      }
    }
    let store = try store(Page(body: body))
    #expect(throws: StoreError.self) { try keys(store, delimited: true) }
    #expect(throws: StoreError.self) { try store.buckets(Call()) }
    #expect(throws: StoreError.self) {
      try store.info(ObjectName(bucket: "bucket", key: "a"), Call())
    }
  }
}
