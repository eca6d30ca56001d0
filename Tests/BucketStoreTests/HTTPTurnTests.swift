import Platform
import TestSupport
import Testing

@testable import BucketStore

@Suite(.serialized) struct HTTPTurnTests {
  private func transfer(
    _ timeout: Span, _ pulse: Locked<Instant>, into sink: (any HTTPSink)? = nil
  ) throws -> Transfer {
    let request = HTTPRequest("GET", "http://127.0.0.1:1/")
    return Transfer(
      request, to: try request.checked(insecure: false), sink: sink,
      Call(timeout: timeout), pulses: TransferPulses(questions: pulse))
  }

  private func isTimeout(_ outcome: Transfer.Outcome) -> Bool {
    if case .left(.timeout) = outcome { true } else { false }
  }

  @Test func whoWaitsForATurnGoesOnAsLongAsOthersGetSomewhere() throws {
    let transfer = try transfer(.milliseconds(50), Locked(Instant.now + .seconds(3600)))
    let net = try Thread(name: "net") {
      _ = Cancellation().sleep(until: .now + .milliseconds(300))
      transfer.finish(.answered(HTTPResponse(status: 200, headers: [:], body: [])))
    }
    let outcome = transfer.wait()
    net.join()
    #expect(!isTimeout(outcome))
  }

  @Test func whoWaitsForATurnBehindSilentOnesTimesOut() throws {
    let transfer = try transfer(.milliseconds(50), Locked(.now))
    #expect(isTimeout(transfer.wait()))
  }

  @Test func anAnswerToAQuestionIsNoSignForWhoWaitsBehindSilentObjects() throws {
    let transfer = try transfer(
      .milliseconds(50), Locked(Instant.now + .seconds(3600)), into: SignSink {})
    #expect(isTimeout(transfer.wait()))
  }

  @Test func whoHasHadItsTurnTimesOutByItself() throws {
    let pulse = Locked(Instant.now)
    let transfer = try transfer(.milliseconds(50), pulse)
    transfer.start()
    pulse.withLock { $0 = .now + .seconds(3600) }
    #expect(isTimeout(transfer.wait()))
  }

  private func queued(_ count: Int, uploads isUpload: Bool) throws -> [Transfer] {
    try (0..<count).map { _ in
      var request = HTTPRequest("GET", "http://127.0.0.1:1/")
      if isUpload { request.payload = .source(NoBytes(), 0..<1, progress: { _ in }) }
      return Transfer(
        request, to: try request.checked(insecure: false), sink: isUpload ? nil : SignSink {},
        Call(), pulses: TransferPulses())
    }
  }

  @Test(arguments: [true, false])
  func bytesOfOneWayDoNotStopThoseOfTheOther(uploadsHang: Bool) throws {
    var queue = TransferQueue(slots: 16)
    for transfer in try queued(100, uploads: uploadsHang) { queue.add(transfer) }
    var hanging = 0
    while queue.startNext() != nil { hanging += 1 }
    #expect(hanging == 12)
    let others = try queued(4, uploads: !uploadsHang)
    for transfer in others { queue.add(transfer) }
    for transfer in others {
      #expect(queue.canStart)
      #expect(queue.startNext() === transfer)
    }
    #expect(!queue.canStart)
  }

  @Test(arguments: [1, 2, 3, 4])
  func fewSlotsServeEveryWay(slots: Int) throws {
    for isUpload in [true, false] {
      var queue = TransferQueue(slots: slots)
      let transfers = try queued(3, uploads: isUpload)
      for transfer in transfers { queue.add(transfer) }
      for transfer in transfers {
        while queue.startNext() != nil {}
        queue.finished(transfer)
      }
      while queue.startNext() != nil {}
      #expect(queue.removeAll().isEmpty)
    }
  }

  @Test func downloadsThatWaitForATurnOutlastTheirTime() throws {
    let client = try HTTPClient(HTTPOptions(active: 4))
    let release = Cancellation()
    let server = try RawServer.keeping { connection, _ in
      connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
      repeat {
        connection.send("1\r\nx\r\n")
      } while !release.sleep(until: .now + .milliseconds(20))
      connection.send("0\r\n\r\n")
    }
    let signs = Locked(Set<Int>())
    let failures = try inParallel(5) { number -> StoreError? in
      let sink = SignSink {
        let count = signs.withLock { signs in
          signs.insert(number)
          return signs.count
        }
        if count == 5 { release.cancel() }
      }
      let failure = client.failure(
        HTTPRequest("GET", server.url), into: sink, Call(timeout: .seconds(2)))
      release.cancel()
      return failure
    }
    #expect(failures.allSatisfy { $0 == nil })
    #expect(signs.withLock { $0 }.count == 5, "those in line are told so too")
  }
}

private final class NoBytes: PutSource {
  func read(_ buffer: UnsafeMutableRawBufferPointer, at offset: Int64) -> Int { 0 }
}

/// Takes all bytes, and reports the signs of life.
private final class SignSink: HTTPSink {
  private let sign: @Sendable () -> Void

  init(_ sign: @escaping @Sendable () -> Void) {
    self.sign = sign
  }

  func begin(_ response: HTTPResponse) -> Bool { true }
  func receive(_ bytes: UnsafeRawBufferPointer) -> Bool { true }
  func goesOn() { sign() }
}
