import BucketStore
import FileSystem
import Foundation
import PendingQueue
import Platform
import TestSupport
import Testing

/// A device with a mount of the bucket `b`, and a door between it and the store.
struct Device {
  let mounted: Mounted
  let door: DoorStore
  /// Whether files are kept from being sent though the store can be reached.
  let isHeld: Locked<Bool>

  /// Mounts one bucket twice, on two devices that know nothing of each other.
  static func pair(
    _ store: MemoryStore, _ body: (Device, Device) throws -> Void
  ) throws {
    store.createBucket("b")
    try mount(store) { first in
      try mount(store) { second in try body(first, second) }
    }
  }

  private static func mount(_ store: MemoryStore, _ body: (Device) throws -> Void) throws {
    let scratch = try Scratch()
    let door = DoorStore(store)
    let isHeld = Locked(false)
    let writing = Writing(
      directory: scratch.path("data"),
      gate: { door.isOpen && !isHeld.withLock { $0 } ? .open : .offline })
    try Mounted.write(door, at: scratch, writing, maxAge: .zero) { mounted in
      try body(Device(mounted: mounted, door: door, isHeld: isHeld))
    }
  }

  /// Runs a line of shell in a folder of the bucket, and expects it to succeed.
  @discardableResult
  func run(_ line: String, in folder: String = "") throws -> String {
    let outcome = try Shell.run(line, in: mounted.path + "/b/" + folder)
    try #require(outcome.code == 0, "\(line): \(outcome.errors)")
    return outcome.output
  }

  func leave() { door.isOpen = false }

  func comeBack() {
    door.isOpen = true
    isHeld.withLock { $0 = false }
    mounted.fileSystem.distrust()
    mounted.fileSystem.queue?.gateChanged()
  }

  /// Waits until everything is stored; a pause after a failure ends at once.
  func drain() throws {
    let end = Instant.now + .seconds(60)
    while try mounted.drain(within: 0.3) != .stored {
      try #require(Instant.now < end, "\(mounted.fileSystem.queue?.records ?? [])")
      mounted.fileSystem.queue?.gateChanged()
    }
  }

  /// Every file below the bucket with its bytes, in order, and the folders.
  func contents() throws -> [String] {
    try run(
      #"find . -mindepth 1 -type d -printf '%P/\n'; find . -type f -printf '%P\n' | sort | "#
        + #"while read -r f; do printf '%s: ' "$f"; tr '\n' ' ' < "$f"; echo; done"#
    ).split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }.sorted()
  }
}
