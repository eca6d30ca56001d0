import Glibc
import Platform

/// The file that the log of a mount goes to.
enum Journal {
  /// A log longer than this is put aside at the next mount.
  private static let longest = 1 << 20

  /// Makes sure that the log can be written, and puts a long one aside as `.old`.
  static func prepare(_ path: String) throws(Complaint) {
    do throws(Errno) {
      try makeFolder(String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)]))
      let file = try File(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW)
      if try file.status().st_size > longest { try check { rename(path, path + ".old") } }
    } catch {
      throw Complaint(
        .refused, "the log \(path) cannot be written: \(error)", hint: "choose another log_file")
    }
  }

  /// Lets standard error go to the log.
  static func redirect(to path: String) throws(Complaint) {
    do throws(Errno) {
      let file = try File(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW)
      try check { dup2(file.descriptor, STDERR_FILENO) }
    } catch {
      throw Complaint(.refused, "the log \(path) cannot be written: \(error)")
    }
    Log.showsTime = true
  }

  /// Makes a folder and those above it, each for its owner alone.
  private static func makeFolder(_ path: String) throws(Errno) {
    var made = ""
    for segment in path.split(separator: "/") {
      made += "/" + segment
      do throws(Errno) {
        try check { mkdir(made, 0o700) }
      } catch {
        // Another error than "is there" shows itself when the log is opened, unless it is there.
        if error != .exists, access(made, F_OK) != 0 { throw error }
      }
    }
  }
}
