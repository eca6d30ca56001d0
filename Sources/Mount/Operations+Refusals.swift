import CFuse
import FileSystem
import Platform

extension Operations {
  /// Every call that would change something, refused as on a read-only file system.
  ///
  /// Calls that are not in the table at all are answered ENOSYS by libfuse, and the kernel does
  /// without them: it checks access itself (`default_permissions`), and there are no symlinks.
  static func setRefusals(_ table: inout fuse_lowlevel_ops) {
    table.setattr = { request, _, _, _, _ in Operations.refuse(request) }
    table.mknod = { request, _, _, _, _ in Operations.refuse(request) }
    table.mkdir = { request, _, _, _ in Operations.refuse(request) }
    table.unlink = { request, _, _ in Operations.refuse(request) }
    table.rmdir = { request, _, _ in Operations.refuse(request) }
    table.symlink = { request, _, _, _ in Operations.refuse(request) }
    table.rename = { request, _, _, _, _, _ in Operations.refuse(request) }
    table.link = { request, _, _, _ in Operations.refuse(request) }
    table.write = { request, _, _, _, _, _ in Operations.refuse(request) }
    table.create = { request, _, _, _, _ in Operations.refuse(request) }
    table.setxattr = { request, _, _, _, _, _ in Operations.refuse(request) }
    table.removexattr = { request, _, _ in Operations.refuse(request) }
    table.fallocate = { request, _, _, _, _, _ in Operations.refuse(request) }
    table.copy_file_range = { request, _, _, _, _, _, _, _, _ in Operations.refuse(request) }
  }

  private static func refuse(_ request: fuse_req_t?) {
    guard let request else { return }
    Request(request).fail(Failure(.readOnly, "the file system is mounted read-only"))
  }
}
