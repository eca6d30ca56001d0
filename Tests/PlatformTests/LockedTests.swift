import Glibc
import Platform
import Testing

/// Waiting on a lock, and being woken.
@Suite(.serialized)
struct LockedTests {
  @Test func aCancelledWaiterIsWokenAndTakesNothingMore() throws {
    let number = Locked(0)
    let cancellation = Cancellation()
    let result = Locked<Int??>(nil)
    let thread = try Thread(name: "waiter") {
      let found = number.wait(cancellation) { $0 > 0 ? $0 : nil }
      result.withLock { $0 = .some(found) }
    }
    cancellation.cancel()
    thread.join()
    #expect(result.withLock { $0 } == .some(nil))
    number.withLock { $0 = 1 }
    #expect(number.wait(cancellation) { $0 > 0 ? $0 : nil } == nil)
  }

  @Test func aWaiterThatIsNotCancelledGetsItsResultOrItsDeadline() {
    let number = Locked(0)
    let cancellation = Cancellation()
    #expect(number.wait(until: .now + .milliseconds(5), cancellation) { $0 > 0 ? $0 : nil } == nil)
    number.withLock { $0 = 7 }
    #expect(number.wait(cancellation) { $0 > 0 ? $0 : nil } == 7)
  }

  /// Each turn is handed to whoever is woken for it; a turn that wakes nobody would end the test
  /// by its time.
  @Test func eachOfManyWaitersIsWokenForATurnOfItsOwn() throws {
    let turns = Locked((free: 0, taken: 0))
    let waiters = 8
    let each = 500
    var threads: [Thread] = []
    for number in 0..<waiters {
      threads.append(
        try Thread(name: "waiter-\(number)") {
          for _ in 0..<each {
            let taken = turns.wait(until: .now + .seconds(60)) { turns -> Bool? in
              guard turns.free > 0 else { return nil }
              turns.free -= 1
              turns.taken += 1
              return true
            }
            if taken == nil { return }
          }
        })
    }
    for _ in 0..<(waiters * each) {
      turns.withLock { $0.free += 1 }
      turns.wakeOne()
    }
    for thread in threads { thread.join() }
    #expect(turns.withLock { $0.taken } == waiters * each)
  }

  /// Jobs that come one by one, in pairs and in crowds, to threads that are idle, busy or not there.
  @Test func everyJobOfAPoolIsRunWhileItsThreadsComeAndGo() {
    let pool = WorkerPool(name: "pool", limit: 4)
    let done = Locked(0)
    var given = 0
    for round in 0..<600 {
      for _ in 0...(round % 7) {
        given += 1
        #expect(
          pool.run {
            done.withLock { $0 += 1 }
            done.wakeAll()
          })
      }
      // Before the next round most threads sleep again: each round has to wake them anew.
      if round % 3 == 0 {
        let wanted = given
        let all = done.wait(until: .now + .seconds(60)) { $0 == wanted ? true : nil }
        #expect(all == true, "\(done.withLock { $0 }) of \(wanted) jobs")
        if all == nil { return }
      }
    }
    pool.close(until: .now + .seconds(60))
    #expect(done.withLock { $0 } == given)
  }

  /// Four jobs that wait for each other need four threads at once: each has to be woken, or made.
  @Test func jobsThatWaitForEachOtherAreAllBegun() {
    let pool = WorkerPool(name: "pool", limit: 4)
    defer { pool.close(until: .now + .seconds(60)) }
    for round in 1...200 {
      let met = Locked(0)
      let all = Locked(0)
      for _ in 0..<4 {
        _ = pool.run {
          met.withLock { $0 += 1 }
          met.wakeAll()
          let isMet = met.wait(until: .now + .seconds(60)) { $0 == 4 ? true : nil }
          all.withLock { $0 += isMet == true ? 1 : 0 }
          all.wakeAll()
        }
      }
      let isDone = all.wait(until: .now + .seconds(120)) { $0 == 4 ? true : nil }
      #expect(isDone == true, "round \(round): \(met.withLock { $0 }) of 4 were begun")
      if isDone == nil { return }
    }
  }
}
