import Foundation
import Platform

/// Runs real programs on a mount, each with a bound on its time.
enum Shell {
  struct Outcome {
    var code: Int32
    var output: String
    var errors: String

    var lines: [String] { output.split(separator: "\n").map(String.init) }
  }

  /// Runs a line of sh(1). A line that takes longer than `limit` seconds is killed: code 137.
  static func run(_ line: String, in folder: String = "/", limit: Int = 60) throws -> Outcome {
    let process = try start(line, in: folder, limit: limit)
    let output = process.output.fileHandleForReading.readDataToEndOfFile()
    let errors = process.errors.fileHandleForReading.readDataToEndOfFile()
    process.process.waitUntilExit()
    return Outcome(
      code: process.process.terminationStatus,
      output: String(decoding: output, as: UTF8.self),
      errors: String(decoding: errors, as: UTF8.self))
  }

  struct Running {
    let process: Process
    let output: Pipe
    let errors: Pipe

    /// Sends a signal to the program and to all that it started.
    func send(_ signal: Int32) { kill(-process.processIdentifier, signal) }

    /// Waits for the first byte of its output, which is dropped.
    func awaitOutput() {
      var byte: UInt8 = 0
      _ = read(output.fileHandleForReading.fileDescriptor, &byte, 1)
    }

    /// Sends a signal to the program alone.
    func sendToChild(_ signal: Int32) throws {
      let number = process.processIdentifier
      let children = try String(
        contentsOfFile: "/proc/\(number)/task/\(number)/children", encoding: .utf8)
      for child in children.split(separator: " ").compactMap({ Int32($0) }) { kill(child, signal) }
    }

    /// Whether it has ended by a moment from now.
    func ends(within seconds: Double) -> Bool {
      let deadline = Instant.now + .seconds(seconds)
      while process.isRunning {
        if Instant.now > deadline { return false }
        usleep(5000)
      }
      return true
    }
  }

  static func start(_ line: String, in folder: String = "/", limit: Int = 60) throws -> Running {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/timeout")
    process.arguments = ["--signal=KILL", "\(limit)", "/bin/sh", "-c", line]
    process.currentDirectoryURL = URL(fileURLWithPath: folder)
    process.environment = ["PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C.UTF-8"]
    process.standardInput = FileHandle.nullDevice
    let running = Running(process: process, output: Pipe(), errors: Pipe())
    process.standardOutput = running.output
    process.standardError = running.errors
    try process.run()
    return running
  }
}
