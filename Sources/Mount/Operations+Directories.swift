import CFuse
import FileSystem
import Platform

extension Operations {
  static func setDirectories(_ table: inout fuse_lowlevel_ops) {
    table.opendir = { request, inode, _ in
      Server.serve(request) { server, caller throws(Failure) in
        .directory(try server.fileSystem.openDirectory(inode, caller))
      }
    }
    table.readdir = { request, _, size, offset, info in
      let handle = Handles.object(info, as: DirectoryHandle.self)
      Server.serve(request) { _, _ throws(Failure) in
        guard let handle else { throw Failure(.badHandle, "a listing without an open folder") }
        var page = DirectoryPage(size)
        for index in Operations.start(handle, offset)..<handle.count {
          guard page.add(handle[index]) else { break }
        }
        return .bytes(page.bytes)
      }
    }
    table.readdirplus = { request, _, size, offset, info in
      let handle = Handles.object(info, as: DirectoryHandle.self)
      Server.serve(request) { server, _ throws(Failure) in
        guard let handle else { throw Failure(.badHandle, "a listing without an open folder") }
        var page = DirectoryPage(size)
        for index in Operations.start(handle, offset)..<handle.count {
          let entry = handle[index]
          // Only what fits is counted: the kernel forgets what it was told, nothing else.
          guard page.hasRoom(for: entry) else { break }
          page.add(entry, server.fileSystem.reference(index, of: handle))
        }
        return .entries(page.bytes, counted: page.counted)
      }
    }
    table.releasedir = { request, _, info in
      let number = info?.pointee.fh ?? 0
      Server.serve(request) { server, _ throws(Failure) in
        server.handles.remove(number)?.close()
        return .done
      }
    }
  }

  /// The place that an entry's cookie names; the end for a number that no entry was given.
  private static func start(_ handle: DirectoryHandle, _ offset: off_t) -> Int {
    min(max(0, offset), handle.count)
  }
}

/// Directory entries as one answer holds them (fuse_add_direntry and its kin in libfuse).
struct DirectoryPage {
  private let memory: UnsafeMutableRawBufferPointer
  private var used = 0
  /// Inodes whose lookup was counted, to be taken back when the answer is not delivered.
  private(set) var counted: [UInt64] = []

  init(_ size: Int) {
    memory = ScratchMemory.bytes(size)
  }

  var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: memory[..<used]) }

  /// Adds a name with its inode number and type.
  ///
  /// - Returns: false when there is no room.
  mutating func add(_ entry: DirectoryEntry) -> Bool {
    var status = entry.attributes.status
    let needed = entry.name.withCString { name in
      fuse_add_direntry(nil, place, left, name, &status, off_t(clamping: entry.cookie))
    }
    guard needed <= left else { return false }
    used += needed
    return true
  }

  func hasRoom(for entry: DirectoryEntry) -> Bool {
    entry.name.withCString { fuse_add_direntry_plus(nil, nil, 0, $0, nil, 0) } <= left
  }

  /// Adds a name with its attributes; there must be room.
  ///
  /// - Parameter known: the entry whose lookup was counted; nil leaves the kernel to look it up.
  mutating func add(_ entry: DirectoryEntry, _ known: Entry?) {
    var parameters = known?.parameters ?? fuse_entry_param()
    if let known {
      counted.append(known.inode)
    } else {
      parameters.attr = entry.attributes.status
    }
    used += entry.name.withCString { name in
      fuse_add_direntry_plus(nil, place, left, name, &parameters, off_t(clamping: entry.cookie))
    }
  }

  private var left: Int { memory.count - used }

  private var place: UnsafeMutablePointer<CChar>? {
    memory.baseAddress.map { ($0 + used).assumingMemoryBound(to: CChar.self) }
  }
}
