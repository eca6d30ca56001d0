import Glibc
import Platform

/// Who keeps a mount busy, as far as /proc shows it.
enum MountUsers {
  /// The first few processes that have a file or their working directory below a path.
  static func names(of path: String, limit: Int = 5) -> [String] {
    var users: [String] = []
    for process in entries("/proc") where process.first?.isNumber == true {
      guard uses("/proc/" + process, path) else { continue }
      users.append("\(name(of: process)) (\(process))")
      if users.count == limit { break }
    }
    return users
  }

  private static func uses(_ process: String, _ path: String) -> Bool {
    let links = ["cwd", "root", "exe"] + entries(process + "/fd").map { "fd/" + $0 }
    return links.contains { link in
      var target = [CChar](repeating: 0, count: 4096)
      let count = readlink(process + "/" + link, &target, target.count)
      guard count > 0 else { return false }
      let bytes = ByteString(target.prefix(count).map(UInt8.init(bitPattern:)))
      return bytes == ByteString(path) || bytes.hasPrefix(ByteString(path + "/"))
    }
  }

  private static func name(of process: String) -> String {
    // A process that has ended meanwhile has no name any more.
    guard let file = try? File("/proc/\(process)/comm", O_RDONLY) else { return "process" }
    var bytes = [UInt8](repeating: 0, count: 64)
    let count = bytes.withUnsafeMutableBytes { try? file.read($0, at: 0) } ?? 0
    return String(decoding: bytes.prefix(count), as: UTF8.self).trimmed
  }

  /// Processes come and go, and most belong to others: what cannot be read has no names.
  private static func entries(_ path: String) -> [String] {
    (try? File(path, O_RDONLY | O_DIRECTORY).entries())?.map(\.name.description) ?? []
  }
}
