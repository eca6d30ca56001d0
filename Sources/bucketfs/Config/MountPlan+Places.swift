import Glibc

extension MountPlan {
  /// Makes sure that no folder of ours lies where the tree will be mounted: whoever serves the
  /// mount would wait for itself.
  ///
  /// - Parameter mountpoint: as the kernel knows it.
  func refusePlaces(inside mountpoint: String) throws(Complaint) {
    let places = [
      ("cache", cacheDirectory, "cache_dir"), ("data folder", dataDirectory, "data_dir"),
      ("log", settings.logFile, "log_file"),
    ]
    for (name, path, option) in places where !path.isEmpty {
      // As it is written first: what is mounted there now might not answer.
      guard Self.lies(path, in: mountpoint) || Self.lies(Self.resolved(path), in: mountpoint)
      else { continue }
      throw Complaint(
        .usage, "the \(name) \(path) lies inside the mount point \(mountpoint)",
        hint: "choose another \(option), or mount elsewhere")
    }
  }

  private static func lies(_ path: String, in folder: String) -> Bool {
    path == folder || path.hasPrefix(folder + "/")
  }

  /// A path without symlinks, as far as what it names is there already.
  private static func resolved(_ path: String) -> String {
    var known = path
    var rest = ""
    while !known.isEmpty, known != "/" {
      if let real = realpath(known, nil) {
        defer { free(real) }
        let folder = String(cString: real)
        return (folder == "/" ? "" : folder) + rest
      }
      let cut = known.lastIndex(of: "/") ?? known.startIndex
      rest = "/" + known[cut...].drop { $0 == "/" } + rest
      known = String(known[..<cut])
    }
    return path
  }
}
