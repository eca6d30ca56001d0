import CFuse
import FileSystem
import Glibc
import Platform

/// The table of callbacks that libfuse is given.
///
/// Every closure captures nothing and stands in this module: one written in the top level of
/// main.swift belongs to the main actor, and traps when another thread runs it.
enum Operations {
  static var table: fuse_lowlevel_ops {
    var table = fuse_lowlevel_ops()
    table.`init` = { context, connection in
      guard let server = Server.from(context), let connection else { return }
      server.negotiate(&connection.pointee)
    }
    setNames(&table)
    setDirectories(&table)
    setFiles(&table)
    setExtendedAttributes(&table)
    setWriting(&table)
    return table
  }

  private static func setNames(_ table: inout fuse_lowlevel_ops) {
    table.lookup = { request, parent, name in
      let name = ByteString(name)
      Server.serve(request) { server, caller throws(Failure) in
        switch try server.fileSystem.lookup(name, in: parent, caller) {
        case .found(let entry): .entry(entry)
        case .missing(let timeout): .missing(timeout: timeout)
        }
      }
    }
    table.forget = { request, inode, count in
      guard let request else { return }
      Server.from(fuse_req_userdata(request))?.fileSystem.forget(inode, count: count)
      Request(request).end()
    }
    table.forget_multi = { request, count, forgets in
      guard let request else { return }
      if let server = Server.from(fuse_req_userdata(request)) {
        for forget in UnsafeBufferPointer(start: forgets, count: count) {
          server.fileSystem.forget(forget.ino, count: forget.nlookup)
        }
      }
      Request(request).end()
    }
    table.getattr = { request, inode, _ in
      Server.serve(request) { server, caller throws(Failure) in
        .attributes(try server.fileSystem.attributes(of: inode, caller))
      }
    }
    table.statfs = { request, _ in
      Server.serve(request) { server, caller throws(Failure) in
        .statistics(server.fileSystem.statistics(caller))
      }
    }
  }

  private static func setFiles(_ table: inout fuse_lowlevel_ops) {
    table.open = { request, inode, info in
      let flags = info?.pointee.flags ?? O_RDONLY
      Server.serve(request) { server, caller throws(Failure) in
        .file(try server.fileSystem.open(inode, flags: flags, caller), flags: flags)
      }
    }
    table.read = { request, _, count, offset, info in
      let handle = Handles.object(info, as: FileHandle.self)
      Server.serve(request) { server, caller throws(Failure) in
        guard let handle else { throw Failure(.badHandle, "a read without an open file") }
        let memory = ScratchMemory.bytes(count)
        let read = try server.fileSystem.read(handle, into: memory, at: Int64(offset), caller)
        return .bytes(UnsafeRawBufferPointer(rebasing: memory[..<min(read, count)]))
      }
    }
    table.release = { request, _, info in
      let number = info?.pointee.fh ?? 0
      let handle = Handles.object(info, as: FileHandle.self)
      Server.serve(request) { server, caller throws(Failure) in
        if let handle { try server.fileSystem.release(handle, caller) }
        server.handles.remove(number)?.close()
        return .done
      }
    }
  }

  private static func setExtendedAttributes(_ table: inout fuse_lowlevel_ops) {
    table.getxattr = { request, inode, name, size in
      let name = ByteString(name)
      Server.serve(request) { server, caller throws(Failure) in
        let value = try server.fileSystem.extendedAttribute(name, of: inode, caller)
        return try Operations.attribute(value, size)
      }
    }
    table.listxattr = { request, inode, size in
      Server.serve(request) { server, caller throws(Failure) in
        let names = try server.fileSystem.extendedAttributeNames(of: inode, caller)
        return try Operations.attribute(names.flatMap { $0.bytes + [0] }, size)
      }
    }
  }

  /// An attribute's bytes, or their number when the asker gave no room (getxattr(2)).
  private static func attribute(_ value: [UInt8], _ size: Int) throws(Failure) -> Reply {
    if size == 0 { return .length(value.count) }
    guard value.count <= size else {
      throw Failure(.range, "an attribute of \(value.count) bytes was asked for with \(size)")
    }
    let memory = ScratchMemory.bytes(value.count)
    memory.copyBytes(from: value)
    return .bytes(UnsafeRawBufferPointer(memory))
  }
}

extension ByteString {
  /// A name that libfuse passes; it passes one always.
  init(_ name: UnsafePointer<CChar>?) {
    self = name.map { ByteString(cString: $0) } ?? ByteString()
  }
}
