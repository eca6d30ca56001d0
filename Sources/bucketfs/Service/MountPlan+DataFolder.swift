import Glibc
import Platform

extension MountPlan {
  /// Where a person's session is kept; whoever writes it decides who is signed in.
  var sessionFile: String { dataDirectory + "/session.json" }

  /// Makes the data folder where it is missing, and makes sure that it is ours alone.
  ///
  /// - Throws: `Complaint` when others can swap it or look into it.
  func prepareDataFolder() throws(Complaint) {
    do throws(FolderTrust.Failure) {
      try FolderTrust.prepare(dataDirectory, mark: "session.json")
    } catch {
      switch error {
      case .unsafe(let path, let reason):
        throw Complaint(
          .refused, "the data folder \(path) is not safe: \(reason)",
          hint: "choose another data_dir")
      case .system(let path, let doing, let error):
        throw Complaint(
          .refused, "the data folder cannot be used: cannot \(doing) \(path): \(error)",
          hint: "choose another data_dir")
      }
    }
  }

  /// The session's file in a data folder that was made sure of; nil where there is none.
  func checkedSessionFile() throws(Complaint) -> String? {
    guard access(sessionFile, F_OK) == 0 else { return nil }
    try prepareDataFolder()
    return sessionFile
  }
}
