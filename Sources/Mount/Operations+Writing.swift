import CFuse
import FileSystem
import Glibc
import Platform

extension Operations {
  /// Calls that change something; on a read-only mount the file system refuses them.
  ///
  /// Calls that are not in the table at all are answered ENOSYS by libfuse, and the kernel does
  /// without them: it checks access itself (`default_permissions`), and copies ranges itself.
  static func setWriting(_ table: inout fuse_lowlevel_ops) {
    setBytes(&table)
    setNaming(&table)
    setAttributes(&table)
    table.symlink = { request, _, _, _ in Operations.refuse(request, "symbolic links") }
    table.link = { request, _, _, _ in Operations.refuse(request, "hard links") }
    table.mknod = { request, _, _, _, _ in Operations.refuse(request, "devices and pipes") }
  }

  private static func setBytes(_ table: inout fuse_lowlevel_ops) {
    table.create = { request, parent, name, mode, info in
      let name = ByteString(name)
      let flags = info?.pointee.flags ?? O_WRONLY
      Server.serve(request) { server, caller throws(Failure) in
        let (entry, handle) = try server.fileSystem.create(
          name, in: parent, mode: mode, flags: flags, caller)
        return .created(entry, handle, flags: flags)
      }
    }
    table.write = { request, _, bytes, count, offset, info in
      let handle = Handles.object(info, as: FileHandle.self)
      Server.serve(request, bytes, count) { server, bytes, caller throws(Failure) in
        guard let handle else { throw Failure(.badHandle, "a write without an open file") }
        try server.fileSystem.write(handle, bytes, at: Int64(offset), caller)
        return .written(bytes.count)
      }
    }
    table.flush = { request, _, info in
      let handle = Handles.object(info, as: FileHandle.self)
      Server.serve(request) { server, caller throws(Failure) in
        if let handle { try server.fileSystem.flush(handle, caller) }
        return .done
      }
    }
    table.fsync = { request, _, _, info in
      let handle = Handles.object(info, as: FileHandle.self)
      Server.serve(request) { server, caller throws(Failure) in
        if let handle { try server.fileSystem.sync(handle, caller) }
        return .done
      }
    }
    table.fsyncdir = { request, _, _, _ in
      Server.serve(request) { server, caller throws(Failure) in
        try server.fileSystem.syncFolders(caller)
        return .done
      }
    }
    table.fallocate = { request, _, mode, offset, length, info in
      let handle = Handles.object(info, as: FileHandle.self)
      Server.serve(request) { server, caller throws(Failure) in
        guard let handle else { throw Failure(.badHandle, "room for no open file") }
        try server.fileSystem.allocate(
          handle, mode: mode, at: Int64(offset), length: Int64(length), caller)
        return .done
      }
    }
  }

  private static func setNaming(_ table: inout fuse_lowlevel_ops) {
    table.mkdir = { request, parent, name, mode in
      let name = ByteString(name)
      Server.serve(request) { server, caller throws(Failure) in
        .entry(try server.fileSystem.makeFolder(name, in: parent, mode: mode, caller))
      }
    }
    table.unlink = { request, parent, name in
      let name = ByteString(name)
      Server.serve(request) { server, caller throws(Failure) in
        try server.fileSystem.remove(name, from: parent, caller)
        return .done
      }
    }
    table.rmdir = { request, parent, name in
      let name = ByteString(name)
      Server.serve(request) { server, caller throws(Failure) in
        try server.fileSystem.removeFolder(name, from: parent, caller)
        return .done
      }
    }
    table.rename = { request, parent, name, newParent, newName, flags in
      let name = ByteString(name)
      let newName = ByteString(newName)
      Server.serve(request) { server, caller throws(Failure) in
        try server.fileSystem.rename(
          name, in: parent, to: newName, in: newParent, flags: flags, caller)
        return .done
      }
    }
  }

  private static func setAttributes(_ table: inout fuse_lowlevel_ops) {
    table.setattr = { request, inode, status, wanted, info in
      let handle = Handles.object(info, as: FileHandle.self)
      let changes = status.map { AttributeChanges($0.pointee, wanted) } ?? AttributeChanges()
      Server.serve(request) { server, caller throws(Failure) in
        .attributes(try server.fileSystem.set(changes, of: inode, handle, caller))
      }
    }
    table.setxattr = { request, inode, name, value, count, flags in
      let name = ByteString(name)
      let value = Array(UnsafeRawBufferPointer(start: value, count: count))
      Server.serve(request) { server, caller throws(Failure) in
        try server.fileSystem.setExtendedAttribute(
          name, to: value, of: inode, flags: flags, caller)
        return .done
      }
    }
    table.removexattr = { request, inode, name in
      let name = ByteString(name)
      Server.serve(request) { server, caller throws(Failure) in
        try server.fileSystem.setExtendedAttribute(name, to: nil, of: inode, flags: 0, caller)
        return .done
      }
    }
  }

  /// What no store can hold; a read-only mount says that first.
  private static func refuse(_ request: fuse_req_t?, _ what: String) {
    Server.serve(request) { server, _ throws(Failure) in
      guard server.fileSystem.isWritable else {
        throw Failure(.readOnly, "the file system is mounted read-only")
      }
      throw Failure(.notPermitted, "a store holds files and folders, no \(what)")
    }
  }
}

extension AttributeChanges {
  /// As FUSE_SETATTR gives them.
  ///
  /// - Parameter wanted: FUSE_SET_ATTR_*, which of them count.
  init(_ status: stat, _ wanted: CInt) {
    self.init()
    func isWanted(_ flag: Int32) -> Bool { wanted & flag != 0 }
    if isWanted(FUSE_SET_ATTR_SIZE) { size = Int64(status.st_size) }
    if isWanted(FUSE_SET_ATTR_MODE) { mode = status.st_mode & 0o7777 }
    if isWanted(FUSE_SET_ATTR_UID) { uid = status.st_uid }
    if isWanted(FUSE_SET_ATTR_GID) { gid = status.st_gid }
    if isWanted(FUSE_SET_ATTR_MTIME_NOW) {
      modified = .now
    } else if isWanted(FUSE_SET_ATTR_MTIME) {
      modified = Timestamp(
        seconds: Int64(status.st_mtim.tv_sec), nanoseconds: Int64(status.st_mtim.tv_nsec))
    }
  }
}
