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

/// When callers with nothing kept are told at once what others have just met.
@Suite struct InsistenceTests {
  private let failure = StoreError(.server, "503")
  /// Nobody asks again while the test lasts.
  private let never = Backoff(first: .seconds(600), longest: .seconds(600))
  private let soon = Backoff(first: .milliseconds(50), longest: .milliseconds(100))

  private func place(_ name: ByteString) -> Place {
    .object(ObjectName(bucket: "b", key: name))
  }

  /// Asks about a thing.
  ///
  /// - Returns: whether the question was put, and how it ended.
  private func ask(
    _ patience: Patience, _ name: ByteString, after time: Span = .zero, _ error: StoreError? = nil
  ) -> (isAsked: Bool, error: StoreError?) {
    var isAsked = false
    do throws(StoreError) {
      try patience.insist(.contents, about: place(name), Call()) { (_) throws(StoreError) in
        isAsked = true
        _ = Cancellation().sleep(until: .now + time)
        if let error { throw error }
      }
      return (isAsked, nil)
    } catch {
      return (isAsked, error)
    }
  }

  private func failing(_ pauses: Backoff, isReached: @escaping @Sendable () -> Bool = { true })
    -> Patience
  {
    let patience = Patience(limit: .seconds(1), shortPauses: pauses, isReached: isReached)
    #expect(ask(patience, "one", after: .milliseconds(1100), failure).isAsked)
    #expect(ask(patience, "two", failure).isAsked)
    return patience
  }

  @Test func whatFailsWithDifferentThingsIsToldToOthersAtOnce() {
    let patience = failing(never)
    for name: ByteString in ["one", "two", "three"] {
      let (isAsked, error) = ask(patience, name)
      #expect(!isAsked)
      #expect(error == failure)
    }
  }

  @Test func oneBrokenThingSaysNothingOfTheOthers() {
    let patience = Patience(limit: .seconds(1), shortPauses: never)
    #expect(ask(patience, "one", after: .milliseconds(1100), failure).isAsked)
    for _ in 0..<5 { #expect(ask(patience, "one", failure).isAsked) }
    #expect(ask(patience, "two").isAsked)
    #expect(ask(patience, "three", failure).isAsked, "there was an answer in between")
    #expect(ask(patience, "four", failure).isAsked)
  }

  @Test func failuresOfAMomentSayNothing() {
    let patience = Patience(limit: .seconds(1), shortPauses: never)
    let begun = Instant.now
    let asked = (0..<5).map { ask(patience, ByteString("\($0)"), failure).isAsked }
    #expect(Instant.now.since(begun) >= .seconds(1) || asked.allSatisfy { $0 })
  }

  @Test func oneAsksFromTimeToTimeAndItsAnswerEndsIt() {
    let patience = failing(soon)
    var tries = 0
    var refusals = 0
    while tries < 3 {
      if ask(patience, "x", failure).isAsked { tries += 1 } else { refusals += 1 }
      _ = Cancellation().sleep(until: .now + .milliseconds(1))
    }
    #expect(refusals > 0)
    while !ask(patience, "y").isAsked { _ = Cancellation().sleep(until: .now + .milliseconds(1)) }
    for number in 0..<20 { #expect(ask(patience, ByteString("\(number)")).isAsked) }
  }

  @Test func whileOneAsksTheOthersDoNotWait() throws {
    let patience = failing(Backoff(first: .milliseconds(1), longest: .milliseconds(1)))
    _ = Cancellation().sleep(until: .now + .milliseconds(600))
    let isAsking = Locked(false)
    let end = Cancellation()
    let trial = try Thread(name: "trial") {
      do throws(StoreError) {
        try patience.insist(.contents, about: self.place("trial"), Call()) { _ in
          isAsking.withLock { $0 = true }
          isAsking.wakeAll()
          _ = end.sleep(until: .now + .seconds(60))
        }
      } catch {
        Issue.record("\(error)")
      }
    }
    #expect(isAsking.wait(until: .now + .seconds(30)) { $0 ? true : nil } ?? false)
    for name: ByteString in ["three", "four"] { #expect(ask(patience, name).error == failure) }
    end.cancel()
    trial.join()
    #expect(ask(patience, "three").isAsked)
  }

  @Test func whileNothingIsSentTheStoreItselfSaysWhy() {
    let isReached = Locked(true)
    let patience = failing(never) { isReached.withLock { $0 } }
    #expect(!ask(patience, "three").isAsked)
    isReached.withLock { $0 = false }
    let offline = StoreError(.offline, "offline")
    #expect(ask(patience, "three", offline).error == offline)
  }

  @Test func whoStoodInLineWhenTheNetworkWasLostHadNoAnswerInTime() {
    let patience = Patience(limit: .seconds(1))
    func kind(waiting: Span) -> StoreError.Kind? {
      let start = Instant(nanoseconds: Instant.now.nanoseconds - waiting.nanoseconds)
      let call = Call(timeout: .seconds(1000), pulse: Pulse(start))
      do throws(StoreError) {
        try patience.insist(.names, about: place("x"), call) { (_) throws(StoreError) in
          throw StoreError(.offline, "offline")
        }
        return nil
      } catch {
        return error.kind
      }
    }
    #expect(kind(waiting: .seconds(900)) == .timeout)
    #expect(kind(waiting: .zero) == .offline)
  }

  @Test func askingAnewEndsIt() {
    let patience = failing(never)
    #expect(!ask(patience, "three").isAsked)
    patience.renew()
    #expect(ask(patience, "three").isAsked)
  }
}
