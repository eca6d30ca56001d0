import BucketStore
import Platform
import TestSupport
import Testing

@testable import PendingQueue

/// What each kind of failure makes of a record.
@Suite struct FailureTests {
  /// What a kind of failure is expected to do.
  enum Effect {
    /// The record waits, the pass ends, no attempt is counted.
    case endsThePass
    /// The record waits for its own next try, and an attempt is counted.
    case backsOff
    /// The record failed, and is not sent again by itself.
    case failed
  }

  private func effect(_ kind: StoreError.Kind) -> Effect? {
    switch kind {
    case .connectivity, .timeout, .offline, .disabled, .sessionExpired: .endsThePass
    // What was in the way is not there when it is looked for.
    case .throttled, .server, .damaged, .noRoom, .exists, .conflict: .backsOff
    case .notFound, .refused, .tooLarge, .typeRefused, .keyRefused, .unsupported: .failed
    case .cancelled: nil
    }
  }

  @Test(arguments: StoreError.Kind.allCases)
  func eachKindOfFailureLeavesTheStateThatItsRowNames(_ kind: StoreError.Kind) throws {
    guard let effect = effect(kind) else { return }
    let fixture = try QueueFixture()
    try fixture.reopen(uploads: 1)
    try fixture.add("first", [1])
    try fixture.add("second", [2])
    fixture.store.inject(.fail(StoreError(kind, "the store's words")), on: .put)
    guard case .ran = fixture.step() else {
      Issue.record("nothing was sent")
      return
    }
    let record = try #require(fixture.entry("first")?.record)
    #expect(record.failure?.reason == "the store's words")
    #expect(try fixture.bytes("first") == [1])
    switch effect {
    case .endsThePass:
      #expect(record.state == .waiting)
      #expect(record.attempts == 0)
      #expect(record.failure?.kind == kind.rawValue)
      guard case .idle(let until?) = fixture.step() else {
        Issue.record("the pass goes on")
        return
      }
      fixture.now = until + .seconds(2)
    case .backsOff:
      #expect(record.state == .waiting)
      #expect(record.attempts == 1)
      #expect(record.failure?.isRetryable == true)
      #expect(try #require(record.nextTry) > fixture.now)
      fixture.now = fixture.now + .seconds(5)
    case .failed:
      #expect(record.state == .failed)
      #expect(record.failure?.isRetryable == false)
    }
    fixture.drain()
    // Whatever became of the first, it does not block the second.
    #expect(fixture.store.bytes("photos", "second") == [2])
    if effect == .failed {
      fixture.now = fixture.now + .seconds(1_000_000)
      fixture.drain()
      #expect(fixture.store.requests.filter { $0.route == .put && $0.key == "first" }.count == 1)
      #expect(try fixture.afterKill().entry("first")?.state == .failed)
      #expect(fixture.queue.retry(fixture.name("first")) == 1)
      fixture.drain()
    }
    #expect(fixture.store.bytes("photos", "first") == [1])
  }

  @Test func refusalsWithoutACredibleSessionCostNoAttempt() throws {
    let fixture = try QueueFixture()
    for session in [SessionState.restoring, .signedOut] {
      for kind in [StoreError.Kind.refused, .notFound] {
        #expect(Verdict(kind, session: session) == .noSession)
      }
    }
    fixture.store.session = .restoring
    try fixture.add("a", [1])
    fixture.store.inject(.fail(StoreError(.refused, "403")), on: .put)
    fixture.drain()
    #expect(fixture.entry("a")?.state == .waiting)
    #expect(fixture.entry("a")?.record.attempts == 0)
  }

  @Test(
    arguments: zip(
      [StoreError.Kind.connectivity, .server, .sessionExpired, .throttled], [8, 50, 8, 50]))
  func aMonthOfOutageSendsABoundedNumberOfRequests(_ kind: StoreError.Kind, _ count: Int) throws {
    let fixture = try QueueFixture()
    for index in 0..<count { try fixture.add(ByteString("file\(index)"), [1]) }
    fixture.store.outage = StoreError(kind, "down")
    let end = fixture.now + .seconds(30 * 86_400)
    while fixture.now < end {
      guard let until = fixture.drain() else {
        Issue.record("nothing would ever be tried again")
        return
      }
      fixture.now = max(until, fixture.now + .milliseconds(1))
    }
    let requests = fixture.store.requests.count
    // One every ten minutes, spread by a quarter, and the first quick ones, however many wait.
    #expect(requests < 30 * 24 * 6 * 4 / 3 + 100)
    #expect(requests > 1000)
    fixture.store.outage = nil
    fixture.now = fixture.now + .seconds(1300)
    while let until = fixture.drain() { fixture.now = until }
    #expect(fixture.store.keys("photos").count == count)
  }

  @Test func aFileThatAloneDoesNotGetThroughCountsItsAttempts() throws {
    let fixture = try QueueFixture()
    try fixture.reopen(uploads: 1)
    try fixture.add("bad", [1])
    try fixture.add("good1", [1])
    func sendBad() throws {
      fixture.store.inject(.fail(StoreError(.timeout, "no answer")), on: .put)
      guard case .ran = fixture.step() else {
        Issue.record("nothing was sent")
        return
      }
    }
    try sendBad()
    #expect(fixture.entry("bad")?.record.attempts == 0)
    // The pause is over, and the other one gets through first.
    fixture.now = fixture.now + .seconds(1.3)
    while fixture.entry("good1") != nil {
      guard case .ran = fixture.step() else {
        fixture.now = fixture.now + .milliseconds(100)
        continue
      }
    }
    fixture.now = fixture.now + .seconds(5)
    try sendBad()
    #expect(fixture.entry("bad")?.record.attempts == 1)
    #expect(fixture.entry("bad")?.record.nextTry != nil)
    try fixture.add("good2", [1])
    fixture.drain()
    #expect(fixture.store.keys("photos") == ["good1", "good2"])
  }

  @Test func aClockThatWasSetBackDoesNotHoldTheQueue() throws {
    let fixture = try QueueFixture()
    try fixture.add("a", [1])
    fixture.store.inject(.fail(StoreError(.server, "500")), on: .put)
    fixture.drain()
    fixture.now = Timestamp(seconds: 1_700_000_000)
    fixture.drain()
    #expect(fixture.store.bytes("photos", "a") == [1])
  }

  // MARK: - Resumable uploads

  private func resumable() throws -> QueueFixture {
    let fixture = try QueueFixture()
    fixture.store.writing = WritingCapabilities(
      atomicCreate: true, atomicReplace: true, resumable: 1000)
    return fixture
  }

  private var large: [UInt8] { (0..<5000).map { UInt8(truncatingIfNeeded: $0 &* 31) } }

  @Test func aLargeFileGoesOnWhereItWasCutAlsoAfterAKill() throws {
    let fixture = try resumable()
    try fixture.add("big", large)
    fixture.store.inject(.cut(after: 3000), on: .continueUpload)
    fixture.drain()
    let token = try #require(fixture.entry("big")?.record.upload)
    #expect(fixture.store.openUploads == [token.text])
    let after = try fixture.afterKill()
    #expect(after.entry("big")?.record.upload == token)
    after.drain()
    #expect(after.store.bytes("photos", "big") == large)
    #expect(after.store.requests.filter { $0.route == .beginUpload }.count == 1)
    #expect(after.store.openUploads.isEmpty)
  }

  @Test func anUploadThatIsOpenIsGivenUpWithItsFileAlsoAfterAKill() throws {
    let fixture = try resumable()
    try fixture.add("big", large)
    fixture.store.inject(.cut(after: 3000), on: .continueUpload)
    fixture.drain()
    #expect(fixture.store.openUploads.count == 1)
    try fixture.queue.remove(fixture.name("big"))
    let after = try fixture.afterKill()
    after.drain()
    #expect(after.store.openUploads.isEmpty)
    #expect(after.store.keys("photos").isEmpty)
    #expect(after.queue.counts == PendingCounts())
    #expect(try after.kept.isEmpty)
  }

  @Test func anUploadThatIsOpenIsGivenUpWhenItsFileIsRenamed() throws {
    let fixture = try resumable()
    try fixture.add("big", large)
    fixture.store.inject(.cut(after: 3000), on: .continueUpload)
    fixture.drain()
    let token = try #require(fixture.store.openUploads.first)
    try fixture.queue.rename(fixture.name("big"), to: fixture.name("new"), base: .absent)
    fixture.queue.gateChanged()
    fixture.drain()
    #expect(!fixture.store.openUploads.contains(token))
    #expect(fixture.store.keys("photos") == ["new"])
    #expect(fixture.store.bytes("photos", "new") == large)
  }

  @Test func theTokenIsOnDiskBeforeTheFirstByteIsSent() throws {
    let fixture = try resumable()
    let id = try fixture.add("big", large)
    let gate = Gate()
    fixture.store.inject(.wait(gate), on: .continueUpload)
    let sender = try fixture.sendInBackground()
    gate.awaitArrivals(1)
    let record = try PendingRecord(
      decoding: File.contents(of: "\(fixture.folder)/\(id).json"), id: id)
    #expect(record.upload?.text == fixture.store.openUploads.first)
    gate.open()
    sender.join()
  }

  @Test func anUploadThatTheStoreForgotIsOpenedAnew() throws {
    let fixture = try resumable()
    try fixture.add("big", large)
    fixture.store.inject(.cut(after: 3000), on: .continueUpload)
    fixture.drain()
    fixture.store.forgetUploads()
    fixture.queue.gateChanged()
    fixture.drain()
    #expect(fixture.store.bytes("photos", "big") == large)
    #expect(fixture.store.requests.filter { $0.route == .beginUpload }.count == 2)
  }

  @Test func aFileChangedAfterACutUploadDoesNotGoOnWithTheOldOne() throws {
    let fixture = try resumable()
    try fixture.add("big", large)
    fixture.store.inject(.cut(after: 3000), on: .continueUpload)
    fixture.drain()
    let file = try fixture.queue.edit(fixture.name("big"))
    try fixture.write(file, [0xff])
    try file.flush()
    file.close()
    fixture.queue.gateChanged()
    fixture.drain()
    var expected = large
    expected[0] = 0xff
    #expect(fixture.store.bytes("photos", "big") == expected)
  }
}

extension QueueFixture {
  /// Makes what is acknowledged durable, and sends one record.
  func step() -> PendingQueue.Step {
    commit()
    return queue.step()
  }
}
