package import BucketStore
import Glibc
package import Platform

extension PendingQueue {
  /// Makes an empty file, in place of what is pending under the name.
  ///
  /// What was pending there is given up only once the new file is acknowledged and durable.
  /// - Parameter base: in place of `new.base`, as in `rename`.
  /// - Throws: `Errno`, such as ENOSPC; EAGAIN for who may not wait, EBUSY when the name is just being
  ///   given to a file that another writer was faster with.
  package func create(
    _ object: ObjectName, _ new: NewFile, base: (() -> PendingBase)? = nil, mayWait: Bool = true
  ) throws(Errno) -> PendingFile {
    try make(object, new, base: base, mayWait: mayWait) { _ in }
  }

  /// Opens what is pending under a name for writing.
  ///
  /// Bytes that are on their way to the store are copied first (reflink where the file system has
  /// it); the upload ends by itself and the newer bytes follow it.
  /// - Parameter keepingBytes: false starts from an empty file (O_TRUNC).
  /// - Throws: `Errno`; ENOENT when nothing is pending under the name, EAGAIN for who may not wait,
  ///   nor copy the bytes of a file.
  package func edit(_ object: ObjectName, keepingBytes: Bool = true, mayWait: Bool = true)
    throws(Errno) -> PendingFile
  {
    let (record, isShared, writers) = try beginShown(
      object, copyingShared: keepingBytes, mayWait: mayWait)
    if isShared || (!keepingBytes && writers == 0) {
      let new = NewFile(
        base: record.base, mode: record.mode, attributes: record.attributes)
      // Held by this handle from here on, whatever becomes of the record meanwhile.
      let old: Content
      do throws(Errno) {
        old = try content(of: record)
      } catch {
        end(record.id, nil)
        throw error
      }
      // Let go once the new record follows it: what its upload learns reaches that one.
      return try make(object, new, following: record.id, mayWait: mayWait) {
        (content) throws(Errno) in
        guard keepingBytes else { return }
        try content.fill(from: old.file.descriptor, size: old.shape.withLock { $0.size })
      }
    }
    let file = try attach(record, isWriter: true)
    if !keepingBytes { try file.truncate(to: 0, mayWait: mayWait) }
    return file
  }

  /// Makes a file that begins with the bytes of an open descriptor: an object changed in place.
  ///
  /// - Parameters:
  ///   - source: read with pread(2), or cloned; it stays the caller's.
  ///   - base: in place of `new.base`, as in `rename`.
  /// - Throws: `Errno`; EIO when the source is shorter than `size`.
  package func adopt(
    _ object: ObjectName, from source: CInt, size: Int64, _ new: NewFile,
    base: (() -> PendingBase)? = nil
  ) throws(Errno) -> PendingFile {
    try make(object, new, base: base, mayWait: true) { (content) throws(Errno) in
      try content.fill(from: source, size: size)
    }
  }

  /// Opens what is pending under a name for reading; nil when nothing is.
  ///
  /// It goes on reading the same bytes when the file is stored, removed or replaced.
  /// - Throws: `Errno` of opening the bytes; EAGAIN for who may not wait.
  package func open(_ object: ObjectName, mayWait: Bool = true) throws(Errno) -> PendingFile? {
    let record: PendingRecord
    do throws(Errno) {
      record = try beginShown(object, mayWait: mayWait).record
    } catch .noEntry {
      return nil
    }
    return try attach(record, isWriter: false)
  }

  /// Begins to change what is shown under a name, whichever record that is by then.
  ///
  /// - Parameter copyingShared: whether bytes that are on their way will be copied, which is nothing
  ///   for who may not wait.
  private func beginShown(_ object: ObjectName, copyingShared: Bool = false, mayWait: Bool)
    throws(Errno) -> (record: PendingRecord, isShared: Bool, writers: Int)
  {
    let found = try state.wait { (state) throws(Errno) -> (PendingRecord, Bool, Int)?? in
      guard let slot = state.shown(object) else { return .some(nil) }
      if !mayWait, slot.isBusy || (copyingShared && slot.flight != nil) { throw .again }
      if slot.isBusy { return nil }
      slot.isBusy = true
      return (slot.record, slot.flight != nil, slot.writers)
    }
    guard let found, let found else { throw .noEntry }
    return (found.0, found.1, found.2)
  }

  /// Opens a handle on a record that this thread changes, and ends that.
  private func attach(_ record: PendingRecord, isWriter: Bool) throws(Errno) -> PendingFile {
    let content: Content
    do throws(Errno) {
      content = try self.content(of: record)
    } catch {
      end(record.id, nil)
      throw error
    }
    end(record.id, nil) { _, slot in
      slot.content = content
      slot.users += 1
      if isWriter { slot.writers += 1 }
    }
    return PendingFile(self, content, isWriter: isWriter)
  }

  /// The open bytes of a record that this thread changes.
  func content(of record: PendingRecord) throws(Errno) -> Content {
    if let content = state.withLock({ $0.slots[record.id]?.content }) { return content }
    let file = try directory.openData(record.id)
    var shape = Content.Shape(size: record.size, modified: record.modified, isDirty: false)
    // What is written behind its end completes it, or what cuts it.
    if record.failure?.kind == PendingFailure.noRoom, record.size < .max {
      shape.missing = record.size..<record.size + 1
    }
    return Content(record.id, file, shape, in: directory)
  }

  /// Makes a record with its data file, to be filled by the caller, and opens it for writing.
  ///
  /// - Parameter old: a record that this thread changes, and lets go with this.
  private func make(
    _ object: ObjectName, _ new: NewFile, following old: PendingID? = nil,
    base: (() -> PendingBase)? = nil, mayWait: Bool, _ fill: (Content) throws(Errno) -> Void
  ) throws(Errno) -> PendingFile {
    guard Self.size(of: new.attributes) <= Self.attributeLimit else {
      if let old { end(old, nil) }
      throw .noSpace
    }
    let now = options.clock()
    let type = contentTypes.type(for: object.key)
    // In the chain before it is on disk, so that what an earlier record learns reaches this one.
    let made = update { state -> PendingRecord? in
      if state.coming.isForAside(object) { return nil }
      let stamp = state.stamp(now)
      var record = PendingRecord(
        id: PendingID(value: stamp), object: object, created: now, placed: stamp,
        contentType: type, size: 0, modified: new.modified ?? now, mode: new.mode,
        base: new.base, state: .writing, owner: state.owner)
      record.attributes = new.attributes
      if let old = state.lastPut(object) {
        record.follow(old.record)
      } else if let base {
        record.base = base()
      }
      record.learn(of: state.deletions(of: object))
      let slot = Slot(record)
      slot.isBusy = true
      slot.users = 1
      slot.writers = 1
      state.insert(slot)
      if let old, let slot = state.slots[old] {
        slot.isBusy = false
        state.schedule.consider(old)
      }
      return record
    }
    guard var record = made else {
      if let old { end(old, nil) }
      throw .busy
    }
    do throws(Errno) {
      let file = try makingRoom(for: 4096, mayWait: mayWait) { () throws(Errno) in
        try directory.createData(record.id)
      }
      let content = Content(
        record.id, file,
        Content.Shape(size: 0, modified: record.modified, isDirty: true), in: directory)
      try fill(content)
      record.size = content.shape.withLock { $0.size }
      try save(record, mayWait: mayWait)
      end(record.id, record) { _, slot in slot.content = content }
      return PendingFile(self, content, isWriter: true)
    } catch {
      do throws(Errno) {
        try directory.remove(record.id)
      } catch {
        Log.warning("\(directory.dataPath(record.id)) stays: \(error)")
      }
      update { $0.remove(record.id) }
      throw error
    }
  }

  static func size(of attributes: [ByteString: [UInt8]]) -> Int {
    attributes.reduce(0) { $0 + $1.key.count + $1.value.count }
  }
}

extension PendingRecord {
  /// Takes the place of another record of the name: what the store had, and may have by now.
  mutating func follow(_ old: PendingRecord) {
    base = old.base
    for fingerprint in old.tried { note(tried: fingerprint) }
  }

  /// What is being deleted under the name, or was to be, is ours too if the store still has it.
  mutating func learn(of deletions: [PendingRecord]) {
    for deletion in deletions {
      for fingerprint in deletion.tried { note(tried: fingerprint) }
    }
  }

  /// Remembers a content that the store may have from us; the last eight are enough to know it.
  mutating func note(tried fingerprint: Fingerprint) {
    tried.removeAll { $0 == fingerprint }
    tried.append(fingerprint)
    if tried.count > 8 { tried.removeFirst() }
  }
}
