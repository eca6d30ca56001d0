import Foundation
import Platform
import StorageEmulator
import Testing

/// A Supabase project on loopback, and a machine that has its address and key.
final class Project: Sendable {
  let emulator: StorageEmulator
  let port: UInt16
  let machine: Machine

  init(_ configuration: Configuration = Configuration()) throws {
    emulator = try StorageEmulator(configuration)
    port = try emulator.start()
    machine = try Machine(environment: ["SUPABASE_KEY": emulator.serviceKey])
  }

  deinit {
    emulator.stop()
  }

  var source: String { "supabase:http://127.0.0.1:\(port)" }

  func mount(_ options: String = "max_age=1") throws { try machine.mount(source, options) }

  /// The path of an object in the mount.
  func path(_ name: String) -> String { machine.mountpoint + "/" + name }

  /// Reads a file of the mount as a program does.
  func read(_ name: String) throws -> [UInt8] { try File.contents(of: path(name), limit: 1 << 30) }

  /// How many requests of these routes came since the last `clear`.
  func requests(_ routes: String...) -> Int {
    emulator.requests.entries().filter { routes.contains($0.route) }.count
  }

  /// Every path below the mount point, folders with a `/` at their end, in bytewise order.
  func tree(timeout: Double = 120) throws -> [String] {
    let outcome = try machine.shell(
      #"cd "$M" && find . -mindepth 1 \( -type d -printf '%P/\n' -o -printf '%P\n' \)"#,
      timeout: timeout)
    try #require(outcome.code == 0, "find: \(outcome.error)")
    return outcome.output.split(separator: "\n").map(String.init).sorted {
      Array($0.utf8).lexicographicallyPrecedes(Array($1.utf8))
    }
  }
}

extension Sequence where Element == String {
  /// The files and folders that keys of one bucket make, in bytewise order.
  func asTree(bucket: String) -> [String] {
    var paths: Set<String> = [bucket + "/"]
    for key in self {
      let segments = key.split(separator: "/").map(String.init)
      for depth in 1..<Swift.max(segments.count, 1) {
        paths.insert(([bucket] + segments.prefix(depth)).joined(separator: "/") + "/")
      }
      paths.insert(bucket + "/" + key)
    }
    return paths.sorted { Array($0.utf8).lexicographicallyPrecedes(Array($1.utf8)) }
  }
}
