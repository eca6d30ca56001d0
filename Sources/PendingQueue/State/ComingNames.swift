import BucketStore

/// Names that records are about to be given, and are in no chain of until that is on disk.
///
/// Guarded by the queue's lock, as part of its state.
struct ComingNames {
  private var aside: Set<ObjectName> = []
  private var renamed: [ObjectName: Int] = [:]

  /// Whether a file that another writer was faster with is about to get the name: nobody else may
  /// have it, since one of the two would take the other's place.
  func isForAside(_ object: ObjectName) -> Bool { aside.contains(object) }

  /// Whether any record is about to get the name.
  func contains(_ object: ObjectName) -> Bool { isForAside(object) || renamed[object] != nil }

  mutating func setAside(as object: ObjectName) { aside.insert(object) }

  mutating func isSetAside(as object: ObjectName) { aside.remove(object) }

  mutating func rename(to object: ObjectName) { renamed[object, default: 0] += 1 }

  mutating func isRenamed(to object: ObjectName) {
    let left = (renamed[object] ?? 1) - 1
    renamed[object] = left > 0 ? left : nil
  }
}
