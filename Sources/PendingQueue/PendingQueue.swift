package import BucketStore
package import Platform

/// The changes that the store does not have yet: a folder of files and records, and their uploader.
///
/// Nothing that was acknowledged is lost: after `PendingFile.flush` a kill of the program loses
/// nothing, after `PendingFile.sync`, or one second after `flush`, a power cut loses nothing.
/// Calls are safe from any thread. Those that change something write to the disk, none waits for
/// the network. Who may not wait for another thread's work on the disk either says so (`mayWait`),
/// and is refused with EAGAIN where that would be needed.
package final class PendingQueue: Sendable {
  /// The most bytes that the extended attributes of one file may have, names and values together.
  package static let attributeLimit = 16 << 10

  let options: QueueOptions
  /// Where everything goes.
  package let store: any WritableStore
  let directory: QueueDirectory
  let contentTypes = ContentTypes()
  let conflictLog: ConflictLog
  /// The queue's lock; taken before a content's.
  let state: Locked<QueueState>
  let receiver = Locked<(any StoredFileReceiver)?>(nil)
  /// Counts what may let an upload start. The uploaders that have nothing to do wait here, since one
  /// of them is enough for one change, and what others wait for is none of theirs.
  let bell = Locked<UInt64>(0)
  /// Cancelled when the queue closes.
  let closing = Cancellation()
  private let observers = Locked<[@Sendable (PendingChange) -> Void]>([])
  private let threads = Locked<[Thread]>([])
  private let committer = Locked<Thread?>(nil)

  /// Opens the folder, made and checked, locked, and scanned; sends nothing before `start`.
  ///
  /// - Throws: `QueueError`.
  package init(_ options: QueueOptions, store: any WritableStore) throws(QueueError) {
    self.options = options
    self.store = store
    directory = try QueueDirectory(profile: options.directory)
    conflictLog = ConflictLog(directory)
    state = Locked(QueueState(owner: options.owner, folderMark: options.folderMark))
    do throws(Errno) {
      try scan()
      let thread = try Thread(name: "committer") { [weak self] in
        while let self, self.commitNext() {}
      }
      committer.withLock { $0 = thread }
    } catch {
      throw .system(path: directory.path, doing: "read", error)
    }
  }

  /// Begins to send; stored files are handed to the receiver, or deleted where there is none.
  ///
  /// - Throws: `Errno` when the system refuses a thread.
  package func start(receiver: (any StoredFileReceiver)?) throws(Errno) {
    self.receiver.withLock { $0 = receiver }
    allowSending()
    for number in 0..<max(options.uploads, 1) {
      let thread = try Thread(name: "uploader-\(number)") { [weak self] in
        while let self, self.sendNext() {}
      }
      threads.withLock { $0.append(thread) }
    }
  }

  /// Lets `step` send, without threads of its own.
  func allowSending() {
    update { state in
      if state.phase == .opened { state.phase = .sending }
    }
  }

  /// Stops sending, makes durable what was acknowledged, and lets another program have the folder.
  package func close() {
    let flights = update { state in
      state.phase = .closing
      return state.slots.values.compactMap(\.flight)
    }
    closing.cancel()
    bell.withLock { $0 &+= 1 }
    bell.wakeAll()
    for flight in flights { flight.call.cancellation.cancel() }
    for thread in threads.withLock({ $0 }) { thread.join() }
    committer.withLock({ $0 })?.join()
    directory.unlock()
    receiver.withLock { $0 = nil }
  }

  // MARK: - What is pending

  /// Whether there is no record at all, deletions included. One look at a number.
  package var isEmpty: Bool { state.withLock { $0.slots.isEmpty } }

  /// What is pending under a name, or nil. Memory only.
  package func entry(for object: ObjectName) -> PendingEntry? {
    state.withLock { state in state.shown(object).map(Self.entry) }
  }

  /// Whether what the store has under a name is about to be deleted there. Memory only.
  package func isDeleted(_ object: ObjectName) -> Bool {
    state.withLock { $0.index.isDeleted(object) }
  }

  /// What is pending right below a folder: a prefix that is empty or ends in `/`. Memory only.
  ///
  /// The folder of no bucket, here and below, is that of all buckets.
  package func folder(_ prefix: ByteString, in bucket: ByteString) -> PendingFolder {
    state.withLock { state in
      let (files, folders, emptied, deleted) = state.index.contents(of: prefix, in: bucket)
      return PendingFolder(
        files: files.compactMap { name, id in
          state.slots[id].map { (name, Self.entry($0)) }
        }, folders: Array(folders), emptied: Array(emptied), deleted: deleted)
    }
  }

  /// Whether deletions, and nothing else, are pending below a folder's prefix. Memory only.
  package func hasDeletions(below prefix: ByteString, in bucket: ByteString) -> Bool {
    state.withLock { state in
      state.index.hasAnything(below: prefix, in: bucket)
        && !state.index.hasFiles(below: prefix, in: bucket)
    }
  }

  /// Whether a file is pending below a folder's prefix. Memory only.
  package func hasEntries(below prefix: ByteString, in bucket: ByteString) -> Bool {
    state.withLock { $0.index.hasFiles(below: prefix, in: bucket) }
  }

  /// Whether a folder holds pending files, or folders of such, besides one name. Memory only.
  package func hasEntries(in prefix: ByteString, of bucket: ByteString, besides name: ByteString)
    -> Bool
  {
    state.withLock { $0.index.hasFiles(in: prefix, of: bucket, besides: name) }
  }

  /// The folder's absolute path.
  package var path: String { directory.path }

  /// All of the owner's files, oldest first.
  package var entries: [PendingEntry] {
    state.withLock { state in
      state.slots.values.filter { $0.isFile && $0.record.owner == state.owner }
        .sorted { $0.record.id < $1.record.id }.map(Self.entry)
    }
  }

  /// All of the owner's records, oldest first: files, and names that are to be deleted.
  package var records: [PendingEntry] {
    state.withLock { state in
      state.slots.values.filter { !$0.lacksBytes && $0.record.owner == state.owner }
        .sorted { $0.record.id < $1.record.id }.map(Self.entry)
    }
  }

  /// Where the bytes of a pending file lie: an absolute path, to be read only.
  package func path(of id: PendingID) -> String { directory.dataPath(id) }

  /// How many records stand where. One look at numbers that are kept.
  package var counts: PendingCounts { state.withLock { $0.counts } }

  /// Tells of each change, on the thread that made it, with no lock held. It must not block.
  package func observe(_ observer: @escaping @Sendable (PendingChange) -> Void) {
    observers.withLock { $0.append(observer) }
  }

  static func entry(_ slot: Slot) -> PendingEntry {
    var record = slot.record
    if let shape = slot.content?.shape.withLock({ $0 }) {
      record.size = shape.size
      record.modified = shape.modified
    }
    return PendingEntry(
      record: record, sent: slot.flight?.sent ?? 0, writers: slot.writers)
  }

  // MARK: - Changing

  /// Changes the state, wakes who waits for it, and tells the observers.
  @discardableResult
  func update<Result: Sendable>(_ body: (inout QueueState) -> Result) -> Result {
    let (result, changes, mayStart) = state.withLock { state -> (Result, [PendingChange], Bool) in
      let result = body(&state)
      state.version &+= 1
      defer { state.changes = [] }
      return (result, state.changes, state.schedule.hasCandidates)
    }
    state.wakeAll()
    if mayStart { ring() }
    if !changes.isEmpty {
      for observer in observers.withLock({ $0 }) {
        for change in changes { observer(change) }
      }
    }
    return result
  }

  /// Has one more uploader look for what may start.
  func ring() {
    bell.withLock { $0 &+= 1 }
    bell.wakeOne()
  }

  /// Waits until nobody changes a record, and lets the caller do it alone.
  ///
  /// - Returns: the record; nil when there is none any more. `end` must follow.
  func begin(_ id: PendingID) -> PendingRecord? {
    let found = state.wait { state -> PendingRecord?? in
      guard let slot = state.slots[id] else { return .some(nil) }
      if slot.isBusy { return nil }
      slot.isBusy = true
      return slot.record
    }
    return found ?? nil
  }

  /// The same; where another thread changes the record, the caller may have to do it later.
  ///
  /// - Throws: `Errno`; EAGAIN when the caller may not wait.
  func begin(_ id: PendingID, mayWait: Bool) throws(Errno) -> PendingRecord? {
    if mayWait { return begin(id) }
    return try state.withLock { (state) throws(Errno) -> PendingRecord? in
      guard let slot = state.slots[id] else { return nil }
      guard !slot.isBusy else { throw .again }
      slot.isBusy = true
      return slot.record
    }
  }

  /// Lets others change the record again; nil leaves it as it was.
  func end(
    _ id: PendingID, _ record: PendingRecord?,
    _ also: (inout QueueState, Slot) -> Void = { _, _ in }
  ) {
    update { state in
      guard let slot = state.slots[id] else { return }
      slot.isBusy = false
      if let record { state.replace(slot, with: record) }
      also(&state, slot)
      state.schedule.consider(id)
    }
  }

  /// Changes a record alone: on disk first, then in memory.
  ///
  /// - Returns: false when there is no such record any more.
  @discardableResult
  func change(
    _ id: PendingID, durable: Bool = false, mayWait: Bool = true,
    _ body: (inout PendingRecord) -> Void
  ) throws(Errno) -> Bool {
    guard let record = try begin(id, mayWait: mayWait) else { return false }
    var changed = record
    body(&changed)
    do throws(Errno) {
      if durable || changed != record {
        try save(changed, durable: durable, mayWait: mayWait)
      }
    } catch {
      end(id, nil)
      throw error
    }
    end(id, changed)
    return true
  }

  func save(_ record: PendingRecord, durable: Bool = false, mayWait: Bool = true) throws(Errno) {
    try makingRoom(for: 64 << 10, mayWait: mayWait) { () throws(Errno) in
      try directory.save(record, durable: durable)
    }
  }

  /// Tries again once when the disk was full and room could be made.
  ///
  /// - Parameter mayWait: making room takes a while; who may not wait is refused with EAGAIN.
  func makingRoom<Result: ~Copyable>(
    for bytes: Int64, mayWait: Bool, _ body: () throws(Errno) -> Result
  ) throws(Errno) -> Result {
    do throws(Errno) {
      return try body()
    } catch .noSpace {
      guard mayWait else { throw .again }
      guard options.makeRoom(bytes) else { throw .noSpace }
      return try body()
    }
  }
}
