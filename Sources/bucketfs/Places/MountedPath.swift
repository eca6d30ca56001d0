import Glibc
import Mount
import Platform

/// A path that a person typed, split into the mount that holds it and the way inside it.
struct MountedPath: Equatable, Sendable {
  let mount: MountEntry
  /// Relative to the mount point, without slashes at either end; empty for the mount itself.
  let inside: ByteString

  /// The path as a person would write it in full.
  var absolute: ByteString {
    inside.isEmpty ? mount.path : mount.path + "/" + inside
  }

  /// Finds the mount by walking the path from the root, following symlinks outside of it only.
  ///
  /// Nothing at or below a mount of ours is touched, since that mount may hang.
  /// - Throws: `Complaint` of code `usage` when the path is unsafe, `no` when no mount holds it.
  init(_ typed: ByteString, in table: Mounts) throws(Complaint) {
    guard !typed.isEmpty else { throw Complaint(.usage, "the path is empty") }
    var walk = Walk(table: table)
    if !typed.hasPrefix("/") {
      guard let folder = Places.workingDirectory else {
        throw Complaint(
          .usage, "\(typed): the working directory is gone", hint: "give an absolute path")
      }
      walk.pending = ByteString(folder).split(at: ByteString.slash)
      try walk.finish(typed)
      // The leading dots of a relative path speak of the working directory, wherever it is.
      var rest = typed.split(at: ByteString.slash)[...]
      while let first = rest.first, first == ".." || first == "." || first.isEmpty {
        if first == ".." { walk.leave() }
        rest = rest.dropFirst()
      }
      walk.pending = Array(rest)
    } else {
      walk.pending = typed.split(at: ByteString.slash)
    }
    try walk.finish(typed)
    guard let mount = walk.mount else {
      throw Complaint(
        .no, "\(typed) is in no bucketfs mount", hint: "bucketfs status lists the mounts")
    }
    self.mount = mount
    inside = ByteString(walk.inside.map(\.bytes).joined(separator: [ByteString.slash]))
  }

  /// A walk from the root, one segment at a time.
  private struct Walk {
    let table: Mounts
    /// Segments still to go.
    var pending: [ByteString] = []
    /// Segments gone outside every mount of ours.
    var outside: [ByteString] = []
    var mount: MountEntry?
    /// Segments gone inside `mount`.
    var inside: [ByteString] = []
    private var links = 0

    init(table: Mounts) {
      self.table = table
      mount = table.ours(at: "/")
    }

    private var path: ByteString {
      ByteString([ByteString.slash] + outside.map(\.bytes).joined(separator: [ByteString.slash]))
    }

    mutating func leave() {
      if mount != nil, !inside.isEmpty {
        inside.removeLast()
      } else {
        mount = nil
        if !outside.isEmpty { outside.removeLast() }
        mount = table.ours(at: path)
      }
    }

    mutating func finish(_ typed: ByteString) throws(Complaint) {
      while !pending.isEmpty {
        let segment = pending.removeFirst()
        if segment.isEmpty || segment == "." { continue }
        if mount != nil {
          try check(segment, of: typed)
          inside.append(segment)
        } else if segment == ".." {
          leave()
        } else {
          outside.append(segment)
          mount = table.ours(at: path)
          if mount == nil { try follow(typed) }
        }
      }
    }

    private func check(_ segment: ByteString, of typed: ByteString) throws(Complaint) {
      let unsafe =
        segment == ".."
        || segment.bytes.contains { $0 < 32 || $0 == 127 || $0 == UInt8(ascii: "\\") }
      guard !unsafe else {
        throw Complaint(
          .usage, "\(typed) is not a safe path",
          hint: "leave out .., backslashes and control characters")
      }
    }

    /// Follows the last segment when it is a symlink.
    private mutating func follow(_ typed: ByteString) throws(Complaint) {
      var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
      let capacity = buffer.count
      let count = path.withCString { readlink($0, &buffer, capacity) }
      // Not a symlink, or not there at all: then no mount is below it either.
      guard count > 0 else { return }
      links += 1
      guard links <= 40 else {
        throw Complaint(.usage, "\(typed) goes through too many symlinks")
      }
      let target = ByteString(buffer.prefix(count).map(UInt8.init(bitPattern:)))
      outside.removeLast()
      if target.hasPrefix("/") { outside = [] }
      mount = table.ours(at: path)
      pending = target.split(at: ByteString.slash) + pending
    }
  }
}
