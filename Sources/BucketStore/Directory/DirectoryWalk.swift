import Glibc
import Platform

/// Walks a bucket's directories in the order of the keys, for one page of a listing.
struct DirectoryWalk: ~Copyable {
  private let root: Directory
  private let request: ListRequest
  private let call: Call

  init(root: borrowing Directory, request: ListRequest, call: Call) throws(Errno) {
    self.root = try Directory(
      owning: root.open(request.bucket, O_RDONLY | O_DIRECTORY), stayingOnMount: true)
    self.request = request
    self.call = call
  }

  /// Adds what one folder holds, and what lies below it.
  ///
  /// - Parameters:
  ///   - page: takes the entries, and says when it is full.
  ///   - folder: the folder's prefix in the bucket, empty or ending in `/`.
  /// - Throws: `Errno`; EINTR when the call was cancelled, EACCES when the folder may not be read,
  ///   or one below whose keys belong on the page.
  func collect(into page: inout DirectoryPage, below folder: ByteString) throws(Errno) {
    let file = try root.open(folder.isEmpty ? "." : folder.dropLast(), O_RDONLY | O_DIRECTORY)
    // A folder sorts as its prefix does: `a.txt` stands before `a/`, since `.` is below `/`.
    let entries = try file.shownEntries().sorted { $0.sortKey < $1.sortKey }
    for entry in entries where !page.isFull {
      if call.cancellation.isCancelled { throw .interrupted }
      let key = folder + entry.sortKey
      do throws(Errno) {
        switch entry.kind {
        case .file: if page.wants(key) { page.add(try file.facts(of: entry.name).info(key: key)) }
        case .folder: try add(folder: key, to: &page)
        }
      } catch .noEntry, .crossDevice {
        // Removed since the folder was read, or another file system is mounted on it.
      }
    }
  }

  private func add(folder: ByteString, to page: inout DirectoryPage) throws(Errno) {
    guard page.mayHoldWanted(folder) else { return }
    if request.delimited, folder.hasPrefix(request.prefix), folder != request.prefix {
      if page.wants(folder), try holdsObject(folder) { page.add(folder: folder) }
    } else {
      try collect(into: &page, below: folder)
    }
  }

  /// Whether any object lies below a folder: an empty directory has no key, so it is not listed.
  /// One that may not be read is no reason to hide it: whoever opens it is told.
  private func holdsObject(_ folder: ByteString) throws(Errno) -> Bool {
    let entries: [DirectoryEntry]
    do throws(Errno) {
      entries = try root.open(folder.dropLast(), O_RDONLY | O_DIRECTORY).shownEntries()
    } catch .noEntry, .crossDevice {
      return false
    } catch .permission {
      return true
    }
    if entries.contains(where: { $0.kind == .file }) { return true }
    for entry in entries where try holdsObject(folder + entry.sortKey) { return true }
    return false
  }
}

/// What fstat(2) tells of a file, in the store's terms.
struct DirectoryFacts {
  let size: Int64
  let modified: Timestamp
  let tag: String
  /// Nil for what is neither: symlinks, sockets, devices.
  let kind: DirectoryEntry.Kind?

  init(_ status: stat) {
    size = Int64(status.st_size)
    modified = Timestamp(
      seconds: Int64(status.st_mtim.tv_sec), nanoseconds: Int64(status.st_mtim.tv_nsec))
    let changed = "\(status.st_ctim.tv_sec).\(status.st_ctim.tv_nsec)"
    tag = "\"\(status.st_ino)-\(status.st_size)-\(changed)\""
    switch status.st_mode & S_IFMT {
    case S_IFREG: kind = .file
    case S_IFDIR: kind = .folder
    default: kind = nil
    }
  }

  func info(key: ByteString) -> ObjectInfo {
    ObjectInfo(key: key, size: size, tag: tag, version: tag, modified: modified)
  }
}

/// One name in a directory of the store.
struct DirectoryEntry {
  enum Kind {
    case file
    case folder
  }

  let name: ByteString
  let kind: Kind

  /// The name as it stands in a key: a folder's with its `/`.
  var sortKey: ByteString { kind == .folder ? name + "/" : name }
}

extension File {
  /// The files and folders of this open directory that the store shows, in no order.
  func shownEntries() throws(Errno) -> [DirectoryEntry] {
    var shown: [DirectoryEntry] = []
    for entry in try entries() where !DirectoryDraft.isDraft(entry.name) {
      let kind: DirectoryEntry.Kind? =
        switch entry.kind {
        case .file: .file
        case .folder: .folder
        case .other: nil
        case .unknown: try kind(of: entry.name)
        }
      if let kind { shown.append(DirectoryEntry(name: entry.name, kind: kind)) }
    }
    return shown
  }

  /// What a name is; nil for what is neither a file nor a folder, or gone since it was read.
  private func kind(of name: ByteString) throws(Errno) -> DirectoryEntry.Kind? {
    do throws(Errno) {
      return try facts(of: name).kind
    } catch .noEntry {
      return nil
    }
  }

  /// The facts of a name in this open directory; symlinks are not followed.
  func facts(of name: ByteString) throws(Errno) -> DirectoryFacts {
    try name.withCString { (name) throws(Errno) in
      var result = stat()
      try check { fstatat(descriptor, name, &result, AT_SYMLINK_NOFOLLOW) }
      return DirectoryFacts(result)
    }
  }
}
