import BucketStore
import Foundation
import Glibc
import Platform
import TestSupport
import Testing

@testable import PendingQueue

/// A queue in a temporary folder over a store in memory, sent step by step at a time of its own.
final class QueueFixture: Sendable, CustomReflectable {
  /// Without children: a failed expectation looks into what it names, and what is noncopyable in
  /// there cannot be looked at.
  var customMirror: Mirror { Mirror(self, children: []) }

  let scratch: Scratch
  let store: MemoryStore
  let receiver = TestReceiver()
  private let current = Locked<PendingQueue?>(nil)
  private let time = Locked(Timestamp(seconds: 1_800_000_000))
  private let question = Locked<(@Sendable () -> Void)?>(nil)
  private let gateState = Locked(UploadGate.open)

  init(scratch: Scratch? = nil, store: MemoryStore? = nil) throws {
    self.scratch = try scratch ?? Scratch()
    self.store = store ?? MemoryStore()
    self.store.createBucket("photos")
    try reopen()
  }

  deinit { current.withLock { $0 }?.close() }

  var queue: PendingQueue {
    guard let queue = current.withLock({ $0 }) else { preconditionFailure("the queue is closed") }
    return queue
  }

  var folder: String { scratch.path("profile/pending") }

  var now: Timestamp {
    get { time.withLock { $0 } }
    set { time.withLock { $0 = newValue } }
  }

  var gate: UploadGate {
    get { gateState.withLock { $0 } }
    set { gateState.withLock { $0 = newValue } }
  }

  func options(owner: String = "anna", uploads: Int = 4) -> QueueOptions {
    QueueOptions(
      directory: scratch.path("profile"), owner: owner, uploads: uploads,
      gate: { [gateState] in gateState.withLock { $0 } },
      clock: { [time, question] in
        let body = question.withLock { body in
          defer { body = nil }
          return body
        }
        body?()
        return time.withLock { $0 }
      })
  }

  /// Runs once, when the queue next asks for the time: a write does in its middle.
  func whenNextAskedForTheTime(_ body: @escaping @Sendable () -> Void) {
    question.withLock { $0 = body }
  }

  /// Closes the queue in order and opens it again.
  func reopen(owner: String = "anna", uploads: Int = 4) throws {
    close()
    let opened = try PendingQueue(options(owner: owner, uploads: uploads), store: store)
    current.withLock { $0 = opened }
    opened.receiver.withLock { $0 = receiver }
    opened.allowSending()
  }

  func close() {
    current.withLock { queue in
      let old = queue
      queue = nil
      return old
    }?.close()
  }

  /// Takes the folder as it is now, as after a kill, and opens it with another queue.
  func afterKill() throws -> QueueFixture {
    let copy = try Scratch()
    try FileManager.default.copyItem(
      atPath: scratch.path("profile"), toPath: copy.path("profile"))
    return try QueueFixture(scratch: copy, store: store)
  }

  // MARK: - Files

  func name(_ key: ByteString) -> ObjectName { ObjectName(bucket: "photos", key: key) }

  /// Writes and closes a new file.
  @discardableResult
  func add(_ key: ByteString, _ bytes: [UInt8], base: PendingBase = .absent) throws -> PendingID {
    let file = try queue.create(name(key), NewFile(base: base))
    try write(file, bytes)
    try file.flush()
    file.close()
    return file.id
  }

  func write(_ file: PendingFile, _ bytes: [UInt8], at offset: Int64 = 0) throws {
    try bytes.withUnsafeBufferPointer { (buffer) throws(Errno) in
      try file.write(UnsafeRawBufferPointer(buffer), at: offset)
    }
  }

  /// The bytes of a pending file; nil when nothing is pending under the name.
  func bytes(_ key: ByteString) throws -> [UInt8]? {
    guard let file = try queue.open(name(key)) else { return nil }
    defer { file.close() }
    return try Self.read(file)
  }

  static func read(_ file: PendingFile) throws -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: Int(file.size))
    let count = try bytes.withUnsafeMutableBufferPointer { (buffer) throws(Errno) in
      try file.read(UnsafeMutableRawBufferPointer(buffer), at: 0)
    }
    return Array(bytes.prefix(count))
  }

  func entry(_ key: ByteString) -> PendingEntry? { queue.entry(for: name(key)) }

  var files: [String] {
    get throws { try FileManager.default.contentsOfDirectory(atPath: folder).sorted() }
  }

  /// Puts a record's file where it cannot be opened, and so cannot be made durable.
  func hide(_ id: PendingID) throws {
    try check { rename("\(folder)/\(id).json", scratch.path("\(id)")) }
    try check { symlink(scratch.path("\(id)"), "\(folder)/\(id).json") }
  }

  /// Puts it back.
  func unhide(_ id: PendingID) throws {
    try check { rename(scratch.path("\(id)"), "\(folder)/\(id).json") }
  }

  /// The files of the folder that are bytes and records.
  var kept: [String] { get throws { try files.filter { $0 != "lock" && $0 != "aside" } } }

  // MARK: - Sending

  /// Makes durable what can be made so; what cannot is told by its record.
  func commit() {
    do throws(Errno) { try queue.commit() } catch {}
  }

  /// Sends on this thread until nothing may go at this time.
  @discardableResult
  func drain() -> Timestamp? {
    while true {
      commit()
      if case .idle(let until) = queue.step() {
        if queue.state.withLock({ $0.uncommitted.isEmpty }) { return until }
      }
    }
  }

  /// Sends one record on a thread of its own.
  func sendInBackground() throws -> Platform.Thread {
    commit()
    let queue = queue
    return try Platform.Thread(name: "sender") { _ = queue.step() }
  }
}

/// Takes stored files by renaming them into a folder, and notes what it was told.
final class TestReceiver: StoredFileReceiver {
  private struct State {
    var folder: Scratch?
    var taken: [StoredFile] = []
    var bytes: [ObjectName: [UInt8]] = [:]
    var changed: [ObjectName] = []
    var elsewhere: [ObjectName: ObjectInfo] = [:]
    var declines = false
    var before: (@Sendable (StoredFile) -> Void)?
  }

  private let state = Locked(State())

  var taken: [StoredFile] { state.withLock { $0.taken } }
  var changed: [ObjectName] { state.withLock { $0.changed } }
  /// What other writers stored under names that files were set aside from.
  var elsewhere: [ObjectName: ObjectInfo] { state.withLock { $0.elsewhere } }
  func bytes(_ object: ObjectName) -> [UInt8]? { state.withLock { $0.bytes[object] } }

  var declines: Bool {
    get { state.withLock { $0.declines } }
    set { state.withLock { $0.declines = newValue } }
  }

  /// Runs before a file is taken, while the queue still shows it.
  func beforeTaking(_ body: @escaping @Sendable (StoredFile) -> Void) {
    state.withLock { $0.before = body }
  }

  func take(_ file: StoredFile) -> Bool {
    state.withLock { $0.before }?(file)
    if declines { return false }
    do {
      let bytes = try File.contents(of: file.path)
      try FileManager.default.removeItem(atPath: file.path)
      state.withLock { state in
        state.taken.append(file)
        state.bytes[file.object] = bytes
      }
      return true
    } catch {
      Issue.record("cannot take \(file.path): \(error)")
      return false
    }
  }

  func changedElsewhere(_ object: ObjectName, _ info: ObjectInfo) {
    state.withLock { $0.elsewhere[object] = info }
  }

  func storeChanged(_ object: ObjectName) { state.withLock { $0.changed.append(object) } }
}
