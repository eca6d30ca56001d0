import Foundation
import Glibc
import Platform
import StorageEmulator
import Testing

/// What a person sees of files on their way to the store.
extension Project {
  /// What `queue --json` says.
  func queue() throws -> [[String: Any]] {
    let outcome = try machine.bucketfs("queue", machine.mountpoint, "--json")
    try #require(outcome.code == 0, "queue: \(outcome.error)")
    return try #require(
      JSONSerialization.jsonObject(with: Data(outcome.output.utf8)) as? [[String: Any]])
  }

  /// Runs `wait`.
  @discardableResult
  func wait(_ seconds: Int = 60) throws -> Outcome {
    try machine.bucketfs(
      "wait", machine.mountpoint, "--timeout", "\(seconds)s", timeout: Double(seconds) + 30)
  }

  /// Mounts a program that kills itself at a named step, and expects it to come up.
  func mount(killedAt step: String, _ options: String = "max_age=1") throws {
    let outcome = try machine.run(
      "env", "BUCKETFS_CRASH_AT=\(step)", Child.products + "/bucketfs", "mount", source,
      machine.mountpoint, "-o", options)
    try #require(outcome.code == 0, "mount: \(outcome.error)")
  }

  /// Whether the mount's process has ended and left a dead mount behind.
  var isDead: Bool {
    var facts = stat()
    return stat(machine.mountpoint, &facts) != 0 && errno == ENOTCONN
  }

  /// The bytes that the store has under a key of the bucket `album`.
  func stored(_ key: String) throws -> [UInt8]? { try emulator.bytes("album", ByteString(key)) }
}
