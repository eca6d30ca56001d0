import Foundation
import Platform

/// A temporary folder of one test, removed with everything in it when the test lets go.
package final class Scratch: Sendable {
  /// The folder's absolute path, symlinks resolved.
  package let path: String

  package init() throws {
    let base = ProcessInfo.processInfo.environment["TMPDIR"] ?? "/tmp"
    var template = Array((base + "/bucketfs-test-XXXXXX").utf8CString)
    guard mkdtemp(&template) != nil else { throw Errno.last }
    let made = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    guard let resolved = realpath(made, nil) else { throw Errno.last }
    defer { free(resolved) }
    path = String(cString: resolved)
  }

  deinit {
    do {
      try FileManager.default.removeItem(atPath: path)
    } catch {
      Log.warning("temporary folder \(path) stays: \(error)")
    }
  }

  /// The path of a name in the folder.
  package func path(_ name: String) -> String { path + "/" + name }

  /// Makes a folder, with its parents.
  @discardableResult
  package func folder(_ name: String) throws -> String {
    try FileManager.default.createDirectory(
      atPath: path(name), withIntermediateDirectories: true,
      attributes: [.posixPermissions: 0o700])
    return path(name)
  }

  /// Writes a file, with its parents.
  @discardableResult
  package func file(_ name: String, _ bytes: [UInt8]) throws -> String {
    let full = path(name)
    try FileManager.default.createDirectory(
      atPath: (full as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
    try Data(bytes).write(to: URL(fileURLWithPath: full))
    return full
  }
}

/// Random numbers that a seed repeats (SplitMix64).
package struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  package init(seed: UInt64) {
    state = seed
  }

  package mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }

  /// That many random bytes.
  package mutating func bytes(_ count: Int) -> [UInt8] {
    var result: [UInt8] = []
    result.reserveCapacity(count + 8)
    while result.count < count {
      withUnsafeBytes(of: next()) { result.append(contentsOf: $0) }
    }
    return Array(result.prefix(count))
  }
}
