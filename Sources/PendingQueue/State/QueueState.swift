import BucketStore
import Platform

/// All that the queue knows, in memory. Guarded by the queue's lock; does nothing but remember.
struct QueueState {
  enum Phase {
    /// Files can be written; nothing is sent yet.
    case opened
    case sending
    case closing
  }

  var phase = Phase.opened
  var owner: String
  var slots: [PendingID: Slot] = [:]
  /// The owner's records of one name, in the order in which they took it; the last is shown.
  var chains: [ObjectName: [PendingID]] = [:]
  /// Names that no chain knows yet.
  var coming = ComingNames()
  var index = FolderIndex()
  var counts = PendingCounts()
  var uncommitted: Set<PendingID> = []
  var isCommitting = false
  /// What is to be acknowledged by the committer, since its writer could not wait.
  var due: [Content] = []
  /// Records whose uploads are open at the store and will not be gone on with; forgotten at the end.
  var abandoned: [PendingRecord] = []
  var schedule = Schedule()
  /// What observers have not been told yet.
  var changes: [PendingChange] = []
  /// Grows with every change, so that a waiting thread misses none.
  var version: UInt64 = 0
  private var lastStamp: UInt64 = 0

  private let folderMark: ByteString?

  /// - Parameter folderMark: the last segment of the keys that keep folders.
  init(owner: String, folderMark: ByteString? = nil) {
    self.owner = owner
    self.folderMark = folderMark.map { "/" + $0 }
  }

  /// A new number that is greater than all before, and the time's where the clock allows.
  mutating func stamp(_ now: Timestamp) -> UInt64 {
    lastStamp = max(UInt64(max(now.nanoseconds, 0)), lastStamp + 1)
    return lastStamp
  }

  /// Never gives a number again that a record has.
  mutating func reserve(_ id: PendingID, _ placed: UInt64) {
    // A number from the far future would leave no room to count on.
    let bound = UInt64(Int64.max)
    lastStamp = max(lastStamp, min(id.value, bound), min(placed, bound))
  }

  // MARK: - Records

  mutating func insert(_ slot: Slot) {
    let record = slot.record
    slots[record.id] = slot
    reserve(record.id, record.placed)
    if record.owner == owner { link(record) }
    count(slot, 1)
    show(record.object)
    schedule.consider(record.id)
  }

  mutating func remove(_ id: PendingID) {
    guard let slot = slots.removeValue(forKey: id) else { return }
    count(slot, -1)
    uncommitted.remove(id)
    unlink(slot.record)
    show(slot.record.object)
    if let next = chains[slot.record.object]?.first { schedule.consider(next) }
  }

  /// Puts a changed record in the place of the old one.
  mutating func replace(_ slot: Slot, with record: PendingRecord) {
    let old = slot.record
    count(slot, -1)
    let moves = old.object != record.object || old.placed != record.placed
    if moves { unlink(old) }
    slot.record = record
    if moves, record.owner == owner { link(record) }
    count(slot, 1)
    show(record.object)
    if moves, old.object != record.object {
      show(old.object)
      if let next = chains[old.object]?.first { schedule.consider(next) }
    }
    schedule.consider(record.id)
  }

  /// Changes what is counted of a slot.
  mutating func update(_ slot: Slot, _ change: (Slot) -> Void) {
    count(slot, -1)
    change(slot)
    count(slot, 1)
    note(slot.record.object, .state)
  }

  /// Another user is signed in: shows that user's records.
  mutating func setOwner(_ owner: String) {
    guard owner != self.owner else { return }
    let old = chains.keys
    self.owner = owner
    chains = [:]
    index = FolderIndex()
    let aside = counts.aside
    counts = PendingCounts()
    counts.aside = aside
    for object in old { note(object, .gone) }
    for slot in slots.values {
      if slot.record.owner == owner { link(slot.record) }
      count(slot, 1)
      schedule.consider(slot.record.id)
    }
    for object in chains.keys { show(object) }
  }

  // MARK: - Names

  /// The record that is shown under a name.
  func shown(_ object: ObjectName) -> Slot? { index.id(of: object).flatMap { slots[$0] } }

  /// The last record of a name that holds, or held, bytes: what a new one follows.
  func lastPut(_ object: ObjectName) -> Slot? {
    for id in (chains[object] ?? []).reversed() {
      if let slot = slots[id], slot.record.operation == .put { return slot }
    }
    return nil
  }

  /// The records that delete what earlier tries may have stored under a name.
  func deletions(of object: ObjectName) -> [PendingRecord] {
    (chains[object] ?? []).compactMap { slots[$0]?.record }.filter { $0.operation == .delete }
  }

  /// Records of the same name that took it before this one.
  func earlier(_ slot: Slot) -> [Slot] {
    let chain = chains[slot.record.object] ?? []
    return chain.prefix { $0 != slot.record.id }.compactMap { slots[$0] }
  }

  /// Records of the same name that took it after this one.
  func later(_ slot: Slot) -> [Slot] {
    let chain = chains[slot.record.object] ?? []
    return chain.drop { $0 != slot.record.id }.dropFirst().compactMap { slots[$0] }
  }

  /// Gives up what is pending under the same name since before: this record's bytes are complete.
  mutating func supersedeEarlier(_ slot: Slot) -> [Flight] {
    var flights: [Flight] = []
    for old in earlier(slot) where old.record.operation == .put {
      old.supersededBy = slot.record.id
      slot.supersedes.append(old.record.id)
      if let flight = old.flight { flights.append(flight) }
    }
    return flights
  }

  mutating func note(_ object: ObjectName, _ kind: PendingChange.Kind) {
    version &+= 1
    let change = PendingChange(object: object, kind: kind)
    if changes.last != change { changes.append(change) }
  }

  // MARK: - Parts

  private mutating func link(_ record: PendingRecord) {
    var chain = chains[record.object] ?? []
    let place = chain.firstIndex { (slots[$0]?.record.placed ?? 0) > record.placed }
    chain.insert(record.id, at: place ?? chain.count)
    chains[record.object] = chain
  }

  private mutating func unlink(_ record: PendingRecord) {
    guard var chain = chains[record.object] else { return }
    chain.removeAll { $0 == record.id }
    chains[record.object] = chain.isEmpty ? nil : chain
  }

  private mutating func show(_ object: ObjectName) {
    var id: PendingID?
    var deleted = false
    for member in chains[object] ?? [] {
      guard let slot = slots[member] else { continue }
      if slot.isFile { id = member }
      if slot.record.operation == .delete { deleted = true }
    }
    let before = index.id(of: object)
    index.set(object, id: id, deleted: deleted && id == nil)
    note(object, id == nil ? .gone : id == before ? .state : .content)
  }

  private mutating func count(_ slot: Slot, _ sign: Int) {
    let record = slot.record
    guard record.owner == owner else {
      counts.ofOthers += sign
      return
    }
    if record.operation == .delete || slot.lacksBytes {
      counts.deletions += sign
      return
    }
    if let folderMark, record.state != .failed, record.object.key.hasSuffix(folderMark) {
      counts.folders += sign
    }
    switch record.state {
    case .writing: counts.writing += sign
    case .waiting: counts.waiting += sign
    case .uploading: counts.uploading += sign
    case .failed: counts.failed += sign
    }
    counts.bytes &+= Int64(sign) &* record.size
  }
}
