import Glibc
import Platform

/// The named steps at which tests kill the program, to see what the next start makes of it.
///
/// Only debug builds obey: the variable `BUCKETFS_CRASH_AT` names a step, with `:N` its N-th time.
enum CrashPoint: String, CaseIterable {
  /// The data file was made; there is no record yet.
  case dataCreated = "commit.data-created"
  /// A record was written under its temporary name.
  case recordWritten = "commit.record-written"
  /// A record was put in its place.
  case recordReplaced = "commit.record-replaced"
  /// The bytes of the batch are durable, their records not yet.
  case dataSynced = "commit.data-synced"
  /// Bytes, records and folder are durable.
  case committed = "commit.done"
  /// The record says that its bytes are about to be sent.
  case uploadMarked = "upload.marked"
  /// The token of a resumable upload was saved.
  case tokenSaved = "upload.token-saved"
  /// The store said that it has the bytes; nothing here knows it yet.
  case uploadSent = "upload.sent"
  /// The store's facts were compared with the bytes.
  case uploadVerified = "upload.verified"
  /// The bytes were handed over; the record is still there.
  case handedOver = "handover.taken"
  /// The record is gone.
  case handoverDone = "handover.done"
  /// The record has its new name, and says which one it left.
  case renameMoved = "rename.moved"
  /// The record that deletes the old name is written.
  case renameLeft = "rename.left"
  /// A file that another writer was faster with has a name of its own, on disk.
  case conflictMoved = "conflict.moved"
  /// A record was marked as gone; its bytes are still there.
  case removeMarked = "remove.marked"
  /// The bytes are gone; the mark is still there.
  case removeDataGone = "remove.data-gone"

  #if DEBUG
    private static let wanted: (name: String, time: Int)? = {
      guard let value = getenv("BUCKETFS_CRASH_AT") else { return nil }
      let parts = String(cString: value).split(separator: ":")
      guard let name = parts.first else { return nil }
      return (String(name), parts.count > 1 ? Int(parts[1]) ?? 1 : 1)
    }()
    private static let passed = Locked(0)
  #endif

  /// Passes a step, or ends the program there.
  static func reach(_ step: CrashPoint) {
    #if DEBUG
      guard let wanted, wanted.name == step.rawValue else { return }
      let isTheOne = passed.withLock { count in
        count += 1
        return count == wanted.time
      }
      if isTheOne { kill(getpid(), SIGKILL) }
    #endif
  }
}
