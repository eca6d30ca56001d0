import BucketStore
import FileCache
import Glibc
import PendingQueue
import Platform

extension MountPlan {
  /// The folder of the files that the store does not have yet.
  var pendingFolder: String { dataDirectory + "/pending" }

  /// Opens the queue of pending files; nil where the mount is for reading only.
  ///
  /// - Throws: `Complaint` when it is in use, or cannot be trusted or read.
  func openQueue(_ parts: StoreParts, _ cache: FileCache) throws(Complaint) -> PendingQueue? {
    guard !settings.readOnly else { return nil }
    let isShared = Self.shareDevice(cacheDirectory, dataDirectory)
    var options = QueueOptions(
      directory: dataDirectory, owner: identity(of: parts.user), uploads: Int(settings.uploads),
      timeout: settings.timeout, gate: { parts.gate },
      makeRoom: { bytes in isShared() && cache.makeRoom(max(bytes, Self.leastRoom)) > 0 },
      conflictNames: ConflictNames(encoding: keyEncoding))
    options.folderMark = names.marker
    options.title = { [names] in Self.title($0, names) }
    do throws(QueueError) {
      return try PendingQueue(options, store: parts.store)
    } catch {
      throw Complaint(error)
    }
  }

  /// How many records the folder holds, without looking into them: for a mount that does not use it.
  var pendingCount: Int {
    do throws(Errno) {
      return try Directory(pendingFolder).names().count { name in
        name.bytes.count == 21 && name.bytes.suffix(5).elementsEqual(".json".utf8)
      }
    } catch {
      // There is no such folder where nothing was ever written.
      return 0
    }
  }

  /// An object as a person sees it: bucket and path, a folder's mark as the folder.
  private static func title(_ object: ObjectName, _ names: KeyNames) -> String {
    var segments = object.key.split(at: ByteString.slash)
    if let last = segments.last, names.isMarker(last) { segments.removeLast() }
    let shown = segments.map { (names.name(of: $0) ?? $0).description }
    return ([object.bucket.description] + shown).joined(separator: "/")
  }

  /// Copies make way for this much at a time, so that they need not for each write.
  private static let leastRoom: Int64 = 8 << 20

  /// Whether what is removed from one folder makes room in the other.
  private static func shareDevice(_ first: String, _ second: String) -> @Sendable () -> Bool {
    {
      var (left, right) = (stat(), stat())
      return stat(first, &left) == 0 && stat(second, &right) == 0 && left.st_dev == right.st_dev
    }
  }
}

extension Complaint {
  /// Why pending files cannot be kept.
  init(_ error: QueueError) {
    switch error {
    case .inUse:
      self.init(
        .refused, error.description, hint: "unmount it there first, or choose another data_dir")
    case .unsafe: self.init(.refused, error.description, hint: "choose another data_dir")
    case .system:
      self.init(
        .failed, error.description,
        hint: "choose another data_dir, or mount with -o ro for reading only")
    }
  }
}
