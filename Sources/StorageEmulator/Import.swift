import Glibc
package import Platform

extension StorageEmulator {
  /// What an import took and what it could not.
  package struct Imported: Sendable {
    /// How many objects were put.
    package var objects = 0
    /// Their bytes together.
    package var bytes = 0
    /// Paths whose names the server would refuse.
    package var refused: [String] = []
  }

  /// Copies a folder into the store: each sub-folder a bucket, each file below an object.
  ///
  /// Objects that are there already with the size of the file stay as they are, so that a folder
  /// can be imported at every start.
  ///
  /// - Throws: `Errno` of the file or folder that cannot be read.
  package func importFolder(_ path: String) throws(Errno) -> Imported {
    var imported = Imported()
    for name in try Self.names(in: path, &imported) {
      let folder = path + "/" + name
      guard try Self.isFolder(folder) else { continue }
      guard KeyRules.allowsNewBucket(name) else {
        imported.refused.append(folder)
        continue
      }
      createBucket(name)
      try importFolder(folder, bucket: name, prefix: "", &imported)
    }
    return imported
  }

  private func importFolder(
    _ path: String, bucket: String, prefix: String, _ imported: inout Imported
  ) throws(Errno) {
    for name in try Self.names(in: path, &imported) {
      let (file, key) = (path + "/" + name, prefix + name)
      if try Self.isFolder(file) {
        try importFolder(file, bucket: bucket, prefix: key + "/", &imported)
        continue
      }
      guard KeyRules.allowsKey(ByteString(key), refusesDots: true) else {
        imported.refused.append(file)
        continue
      }
      let bytes = try File.contents(of: file, limit: 4 << 30)
      if object(bucket, ByteString(key))?.size == bytes.count { continue }
      try put(bucket, ByteString(key), bytes, contentType: Self.type(of: name))
      imported.objects += 1
      imported.bytes += bytes.count
    }
  }

  /// The names in a folder, in order; those that no key can have are refused.
  private static func names(in path: String, _ imported: inout Imported) throws(Errno) -> [String] {
    var names: [String] = []
    for entry in try File(path, O_RDONLY | O_DIRECTORY).entries() {
      if let name = entry.name.string {
        names.append(name)
      } else {
        imported.refused.append("\(path)/\(entry.name)")
      }
    }
    return names.sorted()
  }

  private static func isFolder(_ path: String) throws(Errno) -> Bool {
    var status = stat()
    try check { stat(path, &status) }
    return status.st_mode & S_IFMT == S_IFDIR
  }

  private static func type(of name: String) -> String {
    switch name.split(separator: ".").last.map({ $0.lowercased() }) {
    case "jpg", "jpeg": "image/jpeg"
    case "png": "image/png"
    case "gif": "image/gif"
    case "webp": "image/webp"
    case "svg": "image/svg+xml"
    case "txt", "md", "log": "text/plain"
    case "json": "application/json"
    case "csv": "text/csv"
    case "html": "text/html"
    case "pdf": "application/pdf"
    case "mp4": "video/mp4"
    case "mov": "video/quicktime"
    default: "application/octet-stream"
    }
  }
}
