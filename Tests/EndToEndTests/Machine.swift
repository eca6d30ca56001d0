import Foundation
import Platform
import StorageEmulator
import TestSupport
import Testing

/// A person's machine in a folder: a home, a mount point, and the built program.
final class Machine: Sendable {
  let scratch: Scratch
  let mountpoint: String
  let environment: [String: String]
  /// Words put before every program, such as those that enter a network namespace.
  let prefix: [String]

  init(prefix: [String] = [], environment more: [String: String] = [:]) throws {
    scratch = try Scratch()
    self.prefix = prefix
    mountpoint = try scratch.folder("mnt")
    var environment = ["PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]
    environment["HOME"] = try scratch.folder("home")
    environment["XDG_CACHE_HOME"] = try scratch.folder("cache")
    environment["XDG_DATA_HOME"] = try scratch.folder("data")
    environment["XDG_CONFIG_HOME"] = try scratch.folder("config")
    environment["XDG_RUNTIME_DIR"] = try scratch.folder("run")
    environment["LANG"] = "C.UTF-8"
    self.environment = environment.merging(more) { $1 }
  }

  deinit {
    if isMounted { _ = umount2(mountpoint, CInt(MNT_DETACH)) }
  }

  /// Whether the kernel's table names the mount point.
  var isMounted: Bool {
    guard let table = FileManager.default.contents(atPath: "/proc/self/mounts") else {
      return false
    }
    return String(decoding: table, as: UTF8.self).contains(" \(mountpoint) ")
  }

  /// Runs any program.
  func run(_ arguments: String..., timeout: Double = 60) throws -> Outcome {
    try Child.run(
      prefix + arguments, environment: environment, in: scratch.path, timeout: timeout)
  }

  /// Runs a line of shell with `$M` as the mount point.
  func shell(_ line: String, timeout: Double = 60) throws -> Outcome {
    try Child.run(
      prefix + ["sh", "-c", line], environment: environment.merging(["M": mountpoint]) { $1 },
      in: scratch.path, timeout: timeout)
  }

  /// Runs the built `bucketfs`.
  func bucketfs(_ arguments: String..., timeout: Double = 60) throws -> Outcome {
    try Child.run(
      prefix + [Child.products + "/bucketfs"] + arguments, environment: environment,
      in: scratch.path, timeout: timeout)
  }

  /// Mounts in the background and expects it to be up when the program returns.
  func mount(_ source: String, _ options: String = "max_age=1") throws {
    let outcome = try bucketfs("mount", source, mountpoint, "-o", options)
    try #require(outcome.code == 0, "mount: \(outcome.error)")
    try #require(isMounted)
  }

  func unmount() throws {
    let outcome = try bucketfs("unmount", mountpoint)
    try #require(outcome.code == 0, "unmount: \(outcome.error)")
    try #require(!isMounted)
  }

  /// What `status --json` says.
  func status() throws -> [String: Any] {
    let outcome = try bucketfs("status", mountpoint, "--json")
    try #require(outcome.code == 0, "status: \(outcome.error)")
    let value = try JSONSerialization.jsonObject(with: Data(outcome.output.utf8))
    return try #require(value as? [String: Any])
  }

  /// The pid of the mount's process.
  func pid() throws -> Int32 {
    Int32(try #require(try status()["pid"] as? Int))
  }

  /// Kills the mount's process at once and waits until it is gone.
  func killMount() throws {
    let pid = try self.pid()
    #expect(kill(pid, SIGKILL) == 0)
    for _ in 0..<500 where kill(pid, 0) == 0 { usleep(10_000) }
    #expect(kill(pid, 0) != 0)
  }
}
