import BucketStore
import Platform

/// What may be sent next, and when: oldest first, with pauses while the store cannot be reached.
struct Schedule {
  /// After failures in a row, of one file or of all. Ten minutes at most: a store that is down for
  /// a month is asked some 6,000 times.
  static let pauses = Backoff(first: .seconds(1), longest: .seconds(600))

  struct Due: Comparable {
    let time: Timestamp
    let id: PendingID

    static func < (left: Due, right: Due) -> Bool {
      left.time == right.time ? left.id < right.id : left.time < right.time
    }
  }

  /// Candidates; whether one may really go is looked at when it is taken.
  private var ready = Heap<PendingID>()
  private var isReady: Set<PendingID> = []
  private var delayed = Heap<Due>()
  private var delays: [PendingID: Timestamp] = [:]
  /// Names that a try is under way for, which may no longer be their record's.
  var flying: Set<ObjectName> = []
  var inFlight = 0
  /// Nothing is sent before this moment.
  var hold: Timestamp?
  /// Failures in a row that speak of the way, or of the store as a whole.
  var failuresInRow = 0
  var successes = 0

  mutating func consider(_ id: PendingID) {
    if isReady.insert(id).inserted { ready.push(id) }
  }

  mutating func delay(_ id: PendingID, until time: Timestamp) {
    guard delays[id] != time else { return }
    delays[id] = time
    delayed.push(Due(time: time, id: id))
  }

  /// Whether there is something to look at.
  var hasCandidates: Bool { !ready.isEmpty }

  /// The next candidate, oldest first.
  mutating func take() -> PendingID? {
    guard let id = ready.pop() else { return nil }
    isReady.remove(id)
    return id
  }

  /// Makes those candidates whose time has come, or lies farther away than any pause is.
  mutating func considerDue(_ now: Timestamp, farthest: Timestamp) {
    while let due = delayed.first, due.time <= now || due.time > farthest {
      delayed.pop()
      if delays[due.id] == due.time { delays[due.id] = nil }
      consider(due.id)
    }
  }

  var nextDue: Timestamp? { delayed.first?.time }

  mutating func succeeded() {
    failuresInRow = 0
    hold = nil
    successes += 1
  }

  /// Pauses everything, longer with each failure in a row.
  ///
  /// - Parameter patience: how many failures in a row pass without a pause.
  mutating func failed(_ now: Timestamp, patience: Int) {
    failuresInRow += 1
    guard failuresInRow > patience else { return }
    hold = now + Self.pauses.pause(afterFailures: failuresInRow - patience)
  }

  mutating func resume() {
    failuresInRow = 0
    hold = nil
  }
}

extension QueueState {
  enum Decision {
    case start(PendingID, ObjectName)
    /// Nothing may start now; nil when only a change can make it so.
    case wait(Timestamp?)
  }

  /// What to send now.
  mutating func next(_ now: Timestamp, _ gate: UploadGate, limit: Int) -> Decision {
    guard phase == .sending, gate == .open, schedule.inFlight < limit else { return .wait(nil) }
    // What is farther away than any pause was set by a clock that has gone back since.
    let farthest = now + Schedule.pauses.longest * 2
    if let hold = schedule.hold, hold > now, hold <= farthest { return .wait(hold) }
    // After failures one goes ahead alone, to see.
    if schedule.failuresInRow > 0, schedule.inFlight > 0 { return .wait(nil) }
    schedule.considerDue(now, farthest: farthest)
    while let id = schedule.take() {
      guard let slot = slots[id], mayStart(slot) else { continue }
      if let due = due(slot), due > now, due <= farthest {
        schedule.delay(id, until: due)
        continue
      }
      return .start(id, slot.record.object)
    }
    return .wait(schedule.nextDue)
  }

  private func due(_ slot: Slot) -> Timestamp? {
    guard let next = slot.record.nextTry else { return slot.notBefore }
    return max(next, slot.notBefore ?? next)
  }

  private func mayStart(_ slot: Slot) -> Bool {
    let record = slot.record
    guard record.owner == owner, record.state == .waiting, slot.flight == nil, !slot.isBusy,
      slot.isReady, !slot.isSuperseded, !slot.isUncommitted, record.left == nil,
      chains[record.object]?.first == record.id, !schedule.flying.contains(record.object)
    else { return false }
    // What is being replaced need not be sent any more.
    return later(slot).allSatisfy { $0.writers == 0 || $0.demands > 0 }
  }
}
