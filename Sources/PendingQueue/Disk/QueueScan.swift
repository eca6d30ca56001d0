import Glibc
import Platform

/// What the queue's folder holds at the start, each torn state brought to rest.
///
/// docs/durability.md lists the rules; the comments below bear their names.
struct QueueScan {
  /// A record as it counts from now on.
  struct Found: Sendable {
    var record: PendingRecord
    var lacksBytes = false
  }

  private(set) var found: [Found] = []
  /// Records and bytes that could not be understood, now or at an earlier start.
  private(set) var aside = 0
  /// Ids that are taken by what this program may not touch.
  private(set) var foreign: [PendingID] = []

  private let directory: QueueDirectory

  init(_ directory: QueueDirectory) throws(Errno) {
    self.directory = directory
    let names = Set(try directory.names())
    var records: [PendingID] = []
    var bytes: Set<PendingID> = []
    for name in names {
      guard let text = name.string, let cut = text.firstIndex(of: "."),
        let id = PendingID(text[..<cut])
      else { continue }
      switch text[cut...] {
      case ".json": records.append(id)
      case ".data": bytes.insert(id)
      // removal-interrupted: finish it.
      case ".gone": try directory.remove(id)
      // leftover-new: the record it was to replace still counts.
      case ".json.new": try directory.removeIfThere(text)
      default: continue
      }
    }
    for id in bytes where names.contains(ByteString("\(id).gone")) { bytes.remove(id) }
    let readings = Self.read(records.sorted(), bytes, directory)
    for reading in readings { try take(reading) }
    let known = Set(records)
    for id in bytes where !known.contains(id) { try adopt(orphan: id) }
    aside += try directory.asideCount()
  }

  /// A record's file as it was read, with the facts of its bytes.
  private struct Reading: Sendable {
    let id: PendingID
    let record: Result<PendingRecord, RecordError>
    let size: Int64?
  }

  /// Reads all records, on two threads: most of the time goes into understanding JSON.
  private static func read(
    _ ids: [PendingID], _ bytes: Set<PendingID>, _ directory: QueueDirectory
  ) -> [Reading] {
    let half = ids.count / 2
    guard half > 64 else { return ids.map { read($0, bytes.contains($0), directory) } }
    let rest = Locked<[Reading]>([])
    let later = Array(ids[half...])
    let work: @Sendable () -> Void = {
      let readings = later.map { read($0, bytes.contains($0), directory) }
      rest.withLock { $0 = readings }
    }
    do throws(Errno) {
      let thread = try Thread(name: "scan", work)
      let first = ids[..<half].map { read($0, bytes.contains($0), directory) }
      thread.join()
      return first + rest.withLock { $0 }
    } catch {
      return ids.map { read($0, bytes.contains($0), directory) }
    }
  }

  private static func read(
    _ id: PendingID, _ hasBytes: Bool, _ directory: QueueDirectory
  ) -> Reading {
    var size: Int64?
    do throws(Errno) {
      let contents = try directory.contents("\(id).json")
      if hasBytes, let status = try directory.status("\(id).data"),
        status.st_mode & S_IFMT == S_IFREG
      {
        size = Int64(status.st_size)
      }
      do throws(RecordError) {
        let record = try PendingRecord(decoding: contents, id: id)
        return Reading(id: id, record: .success(record), size: size)
      } catch {
        return Reading(id: id, record: .failure(error), size: size)
      }
    } catch {
      return Reading(id: id, record: .failure(.unreadable("\(error)")), size: size)
    }
  }

  private mutating func take(_ reading: Reading) throws(Errno) {
    switch reading.record {
    case .success(let record): try take(record, size: reading.size)
    case .failure(.newerFormat(let format)):
      // newer-format: for the program that wrote it.
      Log.error(
        "\(directory.path)/\(reading.id).json was written by a newer bucketfs (format \(format)):"
          + " it is kept, and sent only by that version")
      foreign.append(reading.id)
      aside += 1
    case .failure(.unreadable(let reason)):
      // unreadable-record: kept where a person can look at it.
      try putAside(reading.id, "its record cannot be read: \(reason)")
    }
  }

  private mutating func take(_ record: PendingRecord, size: Int64?) throws(Errno) {
    var record = record
    if record.operation == .delete {
      if size != nil { try directory.removeData(record.id) }
      record.state = .waiting
      found.append(Found(record: record))
      return
    }
    guard let size else {
      if record.tried.isEmpty {
        // record-without-bytes: nothing that could be sent.
        try putAside(record.id, "its bytes are gone")
      } else {
        // handed-over: the store is asked whether it has them.
        record.state = .waiting
        found.append(Found(record: record, lacksBytes: true))
      }
      return
    }
    switch record.state {
    case .writing:
      record.size = size
      if record.isSynced {
        // synced-writing: its writer asked for the bytes to count.
        record.state = .waiting
        record.isSynced = false
      } else if size == 0 {
        // empty-writing: nothing was written.
        try directory.remove(record.id)
        return
      } else {
        // interrupted: its writer never closed it.
        record.state = .failed
        record.failure = PendingFailure(
          kind: PendingFailure.interrupted,
          reason: "its writer ended before it closed the file", isRetryable: false)
      }
    case .uploading, .waiting:
      // uploading: the try ended with the program.
      record.state = .waiting
      if size != record.size { record.fail(size: size) }
    case .failed:
      if size != record.size { record.fail(size: size) }
    }
    found.append(Found(record: record))
  }

  /// orphan-bytes: no record says what they are.
  private mutating func adopt(orphan id: PendingID) throws(Errno) {
    guard let status = try directory.status("\(id).data") else { return }
    if status.st_size == 0, status.st_mode & S_IFMT == S_IFREG {
      try directory.removeData(id)
    } else {
      try putAside(id, "no record says what they are")
    }
  }

  private func putAside(_ id: PendingID, _ reason: String) throws(Errno) {
    Log.error("pending file \(id) is put aside into \(directory.path)/aside: \(reason)")
    for name in ["\(id).json", "\(id).data"] {
      do throws(Errno) { try directory.putAside(name) } catch .noEntry {
        // Only one of the two is there.
      }
    }
  }
}

extension PendingRecord {
  /// size-mismatch: a power cut came before the bytes were durable.
  fileprivate mutating func fail(size actual: Int64) {
    state = .failed
    failure = PendingFailure(
      kind: PendingFailure.damaged,
      reason: "\(actual) of its \(size) bytes are here: the device lost power before they were"
        + " kept", isRetryable: false)
    size = actual
    sha256 = nil
  }
}

extension PendingQueue {
  /// Takes up what earlier programs left in the folder.
  func scan() throws(Errno) {
    let scan = try QueueScan(directory)
    let records = scan.found.map(\.record)
    update { state in
      state.counts.aside = scan.aside
      for id in scan.foreign { state.reserve(id, id.value) }
      for found in scan.found {
        let slot = Slot(found.record)
        slot.lacksBytes = found.lacksBytes
        state.insert(slot)
      }
      state.changes = []
    }
    for record in records where record.left != nil { try finishRename(record) }
    for record in records { try dropReplaced(record) }
  }

  /// rename-interrupted: the old name is still to be deleted.
  private func finishRename(_ record: PendingRecord) throws(Errno) {
    guard let left = record.left else { return }
    if state.withLock({ $0.slots[left.id] == nil }) {
      var old = record
      old.object = left.object
      old.tried = left.tried
      let deletion = old.deletion(id: left.id, options.clock())
      try directory.save(deletion, durable: true)
      update { $0.insert(Slot(deletion)) }
    }
    try change(record.id, durable: true) { $0.left = nil }
  }

  /// replaced: a later record of the name is complete, and this one was to go.
  private func dropReplaced(_ record: PendingRecord) throws(Errno) {
    let isReplaced = state.withLock { state -> Bool in
      guard let slot = state.slots[record.id], slot.record.operation == .put else { return false }
      return state.later(slot).contains { later in
        later.record.operation == .put && !(later.record.failure?.isOfParts ?? false)
      }
    }
    if isReplaced { try retire(record.id) }
  }
}
