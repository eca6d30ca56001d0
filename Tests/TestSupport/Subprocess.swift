import Foundation
package import Platform

/// A program that runs beside a test and is killed when the test lets go.
package final class Subprocess: Sendable {
  private let process: Process

  /// Starts a program of the PATH, with its output thrown away.
  package init(_ command: [String], in folder: String) throws {
    process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = command
    process.currentDirectoryURL = URL(fileURLWithPath: folder)
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.run()
  }

  deinit {
    if process.isRunning { kill(process.processIdentifier, SIGKILL) }
  }

  /// Waits for its end.
  ///
  /// - Returns: its exit code.
  package func wait() -> Int32 {
    process.waitUntilExit()
    return process.terminationStatus
  }

  /// Whether a program of this name is on the PATH.
  package static func exists(_ name: String) -> Bool {
    let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
    let folders = path.split(separator: ":").map(String.init) + ["/usr/sbin", "/sbin"]
    return folders.contains { FileManager.default.isExecutableFile(atPath: "\($0)/\(name)") }
  }

  /// A port of this machine that was free a moment ago.
  package static func freePort() throws(Errno) -> UInt16 {
    let server = try RawServer { _ in }
    defer { server.stop() }
    return server.port
  }

  /// Waits until somebody listens on a port of this machine.
  package static func waitForPort(_ port: UInt16, within span: Span = .seconds(10)) -> Bool {
    let end = Instant.now + span
    while Instant.now < end {
      do throws(Errno) {
        try RawConnection(to: port).cut()
        return true
      } catch {
        usleep(20_000)
      }
    }
    return false
  }
}
