import BucketStore
import Platform
import TestSupport
import Testing

@testable import FileSystem

/// How long the store is waited for where something kept can answer.
@Suite struct PatienceTests {
  /// A question that is answered when the test says so.
  private final class Held: Sendable {
    private let isOpen = Locked(false)
    let asked = Locked(0)

    func open() {
      isOpen.withLock { $0 = true }
      isOpen.wakeAll()
    }

    func answer(_ text: String) -> String {
      asked.withLock { $0 += 1 }
      _ = isOpen.wait { $0 ? true : nil }
      return text
    }
  }

  @Test func anAnswerInTimeIsPassedOn() throws {
    let patience = Patience(limit: .seconds(30))
    #expect(try patience.ask(.names, Call()) { (_) throws(StoreError) in "now" } == "now")
  }

  @Test func aFailureIsTheCallersOwn() {
    let patience = Patience(limit: .seconds(30))
    #expect(throws: StoreError(.refused, "no")) {
      try patience.ask(.names, Call()) { (_) throws(StoreError) -> String in
        throw StoreError(.refused, "no")
      }
    }
  }

  @Test func aSilentStoreIsLeftAndItsAnswerIsTakenLater() throws {
    let patience = Patience(limit: .milliseconds(50))
    let held = Held()
    let late = Locked<String?>(nil)
    let answer = try patience.ask(.names, Call()) { (_) throws(StoreError) in
      held.answer("late")
    } late: { text in
      late.withLock { $0 = text }
      late.wakeAll()
    }
    #expect(answer == nil)
    held.open()
    #expect(late.wait(until: .now + .seconds(30)) { $0 } == "late")
  }

  @Test func whileOneQuestionIsSilentOthersDoNotWaitAtAll() throws {
    let patience = Patience(limit: .milliseconds(50))
    let held = Held()
    #expect(
      try patience.ask(.names, Call()) { (_) throws(StoreError) in held.answer("late") } == nil)
    let second = Locked(false)
    let start = Instant.now
    for _ in 0..<100 {
      let answer = try patience.ask(.names, Call()) { (_) throws(StoreError) -> String in
        second.withLock { $0 = true }
        return held.answer("later")
      }
      #expect(answer == nil)
    }
    // A hundred waits of 50 ms would be five seconds.
    #expect(Instant.now.since(start) < .seconds(2))
    #expect(second.withLock { $0 } == false)
    held.open()
    var answer: String?
    for _ in 0..<1000 where answer == nil {
      answer = try patience.ask(.names, Call()) { (_) throws(StoreError) in "again" }
      if answer == nil { _ = Cancellation().sleep(until: .now + .milliseconds(10)) }
    }
    #expect(answer == "again")
  }

  @Test func aSlowObjectDoesNotMakeALiveStoreSilent() throws {
    let patience = Patience(limit: .milliseconds(400))
    let held = Held()
    let waiter = try Thread(name: "slow") {
      do throws(StoreError) {
        let answer = try patience.ask(.names, Call()) { (_) throws(StoreError) in
          held.answer("slow")
        }
        #expect(answer == nil)
      } catch {
        Issue.record("\(error)")
      }
    }
    while held.asked.withLock({ $0 }) == 0 {
      _ = Cancellation().sleep(until: .now + .milliseconds(5))
    }
    #expect(try patience.ask(.names, Call()) { (_) throws(StoreError) in "quick" } == "quick")
    waiter.join()
    #expect(try patience.ask(.names, Call()) { (_) throws(StoreError) in "quick" } == "quick")
    held.open()
  }

  @Test func anInterruptEndsTheWaiting() throws {
    let patience = Patience(limit: .seconds(60))
    let held = Held()
    let call = Call()
    let interrupter = try Thread(name: "interrupt") {
      while held.asked.withLock({ $0 }) == 0 {
        _ = Cancellation().sleep(until: .now + .milliseconds(5))
      }
      call.cancellation.cancel()
    }
    do throws(StoreError) {
      _ = try patience.ask(.names, call) { (_) throws(StoreError) in held.answer("never") }
      Issue.record("it was not interrupted")
    } catch {
      #expect(error.kind == .cancelled)
    }
    interrupter.join()
    held.open()
  }
}
