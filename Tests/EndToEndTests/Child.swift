import Foundation
import Platform

/// How a child process ended.
struct Outcome: Sendable {
  /// The exit code; 128 plus the signal's number when one ended it; -1 when the time ran out.
  let code: Int32
  let output: String
  let error: String
  let seconds: Double
}

/// Runs programs as a person's shell would.
enum Child {
  /// Runs a program to its end; kills it when the time runs out.
  ///
  /// Output goes through files, so a child that outlives its parent holds nothing up.
  static func run(
    _ arguments: [String], environment: [String: String], in scratch: String, timeout: Double = 60
  ) throws -> Outcome {
    let name = UUID().uuidString
    let outputPath = "\(scratch)/\(name).out"
    let errorPath = "\(scratch)/\(name).err"
    for path in [outputPath, errorPath] {
      try Data().write(to: URL(fileURLWithPath: path))
    }
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = arguments
    process.environment = environment
    process.currentDirectoryURL = URL(fileURLWithPath: scratch)
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = try FileHandle(forWritingTo: URL(fileURLWithPath: outputPath))
    process.standardError = try FileHandle(forWritingTo: URL(fileURLWithPath: errorPath))
    let ended = Locked(false)
    process.terminationHandler = { _ in
      ended.withLock { $0 = true }
      ended.wakeAll()
    }
    let start = Instant.now
    try process.run()
    let inTime = ended.wait(until: start + .seconds(timeout)) { $0 ? true : nil } ?? false
    if !inTime { kill(process.processIdentifier, SIGKILL) }
    process.waitUntilExit()
    let seconds = Instant.now.since(start).seconds
    let signalled = process.terminationReason == .uncaughtSignal
    let code = inTime ? (signalled ? 128 : 0) + process.terminationStatus : -1
    defer {
      unlink(outputPath)
      unlink(errorPath)
    }
    return Outcome(
      code: code,
      output: String(
        decoding: try Data(contentsOf: URL(fileURLWithPath: outputPath)), as: UTF8.self),
      error: String(decoding: try Data(contentsOf: URL(fileURLWithPath: errorPath)), as: UTF8.self),
      seconds: seconds)
  }

  /// The folder that holds the programs built beside the tests.
  static let products: String = {
    let bundle = CommandLine.arguments.first { $0.hasSuffix(".xctest") }
    let path = bundle ?? ProcessInfo.processInfo.arguments[0]
    return URL(fileURLWithPath: path).deletingLastPathComponent().path
  }()
}
