import BucketStore
import Glibc
import Platform
import TestSupport
import Testing

/// Bytes that follow from their offset; may end early or fail.
private final class CountingSource: PutSource {
  private let end: Int64
  private let failure: Errno?
  private let reads = Locked(0)

  init(endingAt end: Int64 = .max, failure: Errno? = nil) {
    self.end = end
    self.failure = failure
  }

  var readCount: Int { reads.withLock { $0 } }

  static func byte(at offset: Int64) -> UInt8 { UInt8(truncatingIfNeeded: offset &* 31 >> 3) }

  func read(_ buffer: UnsafeMutableRawBufferPointer, at offset: Int64) throws(Errno) -> Int {
    reads.withLock { $0 += 1 }
    if let failure { throw failure }
    let count = Int(min(Int64(buffer.count), max(end - offset, 0)))
    for index in 0..<count { buffer[index] = Self.byte(at: offset + Int64(index)) }
    return count
  }
}

@Suite struct HTTPUploadTests {
  let client: HTTPClient

  init() throws {
    client = try HTTPClient()
  }

  private func request(
    _ url: String, _ source: CountingSource, _ range: Range<Int64>,
    progress: @escaping @Sendable (Int64) -> Void = { _ in }
  ) -> HTTPRequest {
    var request = HTTPRequest("PUT", url + "/object")
    request.payload = .source(source, range, progress: progress)
    return request
  }

  @Test func aPartOfASourceArrivesWithItsLengthAndItsProgress() throws {
    let server = try RawServer.keeping { connection, _ in connection.answer() }
    let range: Range<Int64> = 1000..<3_000_000
    let steps = Locked<[Int64]>([])
    let request = request(server.url, CountingSource(), range) { sent in
      steps.withLock { $0.append(sent) }
    }
    #expect(try client.perform(request, into: nil, Call()).status == 200)
    let seen = try #require(server.requests.first)
    #expect(seen.header("content-length") == "2999000")
    #expect(seen.header("transfer-encoding") == nil)
    #expect(seen.body == range.map { CountingSource.byte(at: $0) })
    let told = steps.withLock { $0 }
    #expect(told.last == 2_999_000)
    #expect(told == told.sorted())
    #expect(client.counters.bytesOut == 2_999_000)
  }

  @Test func aSourceThatEndsEarlyOrFailsDamagesTheRequest() throws {
    let server = try RawServer.keeping { connection, _ in connection.answer() }
    for source in [CountingSource(endingAt: 500_000), CountingSource(failure: .io)] {
      let error = client.failure(request(server.url, source, 0..<1_000_000))
      #expect(error?.kind == .damaged)
    }
    #expect(server.requests.isEmpty)
  }

  @Test func aKeptConnectionThatDiedDoesNotCostTheUpload() throws {
    let server = try RawServer { connection in
      if connection.readRequest() != nil { connection.answer() }
    }
    for _ in 0..<10 {
      #expect(client.failure(request(server.url, CountingSource(), 0..<200_000)) == nil)
    }
    let expected = (0..<200_000).map { CountingSource.byte(at: $0) }
    #expect(server.requests.allSatisfy { $0.body == expected })
    #expect(server.requests.count == 10)
  }

  @Test func aKeptConnectionThatDiesUnderTheBodyDoesNotCostTheUpload() throws {
    let count = Locked(0)
    let server = try RawServer { connection in
      let number = count.withLock { count in
        count += 1
        return count
      }
      if connection.readRequest() != nil { connection.answer() }
      guard number == 1 else { return connection.hold() }
      // Open until the next request's head is here: the reset comes under its body.
      _ = connection.receive()
      connection.reset()
    }
    #expect(try client.get(server.url + "/").status == 200)
    let error = client.failure(request(server.url, CountingSource(), 0..<20_000_000))
    #expect(error == nil, "\(error?.message ?? "")")
    #expect(server.accepted == 2)
    #expect(server.requests.last?.body.count == 20_000_000)
  }

  @Test func aServerThatReadsSlowlyIsNotSilent() throws {
    let server = try RawServer { connection in
      let size = 40_000_000
      var seen = 0
      while seen < size, let bytes = connection.receive() {
        seen += bytes.count
        connection.pause(.milliseconds(5))
      }
      connection.answer()
    }
    let taken = span {
      let request = request(server.url, CountingSource(), 0..<40_000_000)
      #expect(client.failure(request, Call(timeout: .seconds(2))) == nil)
    }
    #expect(taken > .seconds(2))
  }

  @Test(arguments: [HTTPRepetition.always, .unlessWhole, .never])
  func aPayloadGoesOutAgainOnlyWhereThatDoesNoHarm(_ repetition: HTTPRepetition) throws {
    // Answers once on each connection, and reads the next request whole before it closes.
    let server = try RawServer { connection in
      if connection.readRequest() != nil, connection.answer() { _ = connection.readRequest() }
    }
    var request = request(server.url, CountingSource(), 0..<200_000)
    request.repetition = repetition
    #expect(client.failure(request) == nil)
    #expect(client.failure(request)?.kind == (repetition == .always ? nil : .connectivity))
    #expect(server.requests.count == (repetition == .always ? 3 : 2))
  }

  @Test(arguments: [HTTPRepetition.always, .unlessWhole, .never])
  func halfAPayloadGoesOutAgainUnlessHalvesAreKept(_ repetition: HTTPRepetition) throws {
    let count = Locked(0)
    let server = try RawServer { connection in
      let number = count.withLock { count in
        count += 1
        return count
      }
      while connection.readRequest() != nil, connection.answer(), number > 1 {}
      if number == 1 { _ = connection.receive() }
    }
    #expect(client.failure(HTTPRequest("GET", server.url + "/")) == nil)
    var request = request(server.url, CountingSource(), 0..<20_000_000)
    request.repetition = repetition
    #expect(client.failure(request)?.kind == (repetition == .never ? .connectivity : nil))
    #expect(server.accepted == (repetition == .never ? 1 : 2))
  }

  @Test func aServerThatStopsReadingEndsAtTheDeadline() throws {
    let release = Cancellation()
    defer { release.cancel() }
    let server = try RawServer { _ in _ = release.sleep(until: .now + .seconds(30)) }
    let taken = span {
      let request = request(server.url, CountingSource(), 0..<(1 << 30))
      #expect(client.failure(request, Call(timeout: .milliseconds(500)))?.kind == .timeout)
    }
    #expect(taken < .seconds(5))
  }

  @Test func aRefusalBeforeTheBodyIsReadIsTheAnswer() throws {
    let server = try RawServer { connection in
      _ = connection.receive()
      connection.answer("413 Too Large", headers: ["Connection: close"], "no room")
      connection.pause(.milliseconds(100))
    }
    for _ in 0..<5 {
      let request = request(server.url, CountingSource(), 0..<(1 << 28))
      let response = try client.perform(request, into: nil, Call())
      #expect(response.status == 413)
      #expect(response.body == Array("no room".utf8))
    }
  }

  @Test func noSourceIsReadAfterItsCallHasReturned() throws {
    let server = try RawServer { connection in connection.hold() }
    for round in 0..<20 {
      let source = CountingSource()
      let call = Call()
      let request = request(server.url, source, 0..<(1 << 40)) { sent in
        if sent > Int64(round) * 100_000 { call.cancellation.cancel() }
      }
      #expect(client.failure(request, call)?.kind == .cancelled)
      let count = source.readCount
      _ = Cancellation().sleep(until: .now + .milliseconds(5))
      #expect(source.readCount == count)
    }
  }
}
