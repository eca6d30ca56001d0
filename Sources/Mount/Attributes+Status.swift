import CFuse
import FileSystem
import Glibc

extension Attributes {
  /// As stat(2) has them.
  var status: stat {
    var status = stat()
    status.st_ino = UInt(inode)
    status.st_mode = mode
    status.st_nlink = UInt(links)
    status.st_uid = uid
    status.st_gid = gid
    status.st_size = Int(size)
    status.st_blksize = 4096
    status.st_blocks = Int(clamping: blocks)
    status.st_mtim = modified.timespec
    status.st_atim = modified.timespec
    status.st_ctim = modified.timespec
    return status
  }
}

extension Entry {
  var parameters: fuse_entry_param {
    var parameters = fuse_entry_param()
    parameters.ino = inode
    parameters.generation = 1
    parameters.attr = attributes.status
    parameters.attr_timeout = attributesTimeout.seconds
    parameters.entry_timeout = entryTimeout.seconds
    return parameters
  }
}

extension Statistics {
  /// As statvfs(3) has them.
  var status: statvfs {
    var status = statvfs()
    status.f_bsize = UInt(blockSize)
    status.f_frsize = UInt(blockSize)
    status.f_blocks = UInt(blocks)
    status.f_bfree = UInt(freeBlocks)
    status.f_bavail = UInt(freeBlocks)
    status.f_files = UInt(files &+ freeFiles)
    status.f_ffree = UInt(freeFiles)
    status.f_favail = UInt(freeFiles)
    status.f_namemax = UInt(longestName)
    return status
  }
}
