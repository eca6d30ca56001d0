package import BucketStore
import Foundation
import Platform

/// A server of S3 on loopback, one of each kind for a whole run of tests.
///
/// It runs in the environment that `scripts/venv` makes, and ends with the process of the tests,
/// however that ends.
package final class S3Server: Sendable {
  package enum Kind: String, Sendable {
    /// SeaweedFS: a real server.
    case seaweed = "weed"
    /// moto: a second opinion of what S3 is.
    case moto = "moto_server"
  }

  package struct Missing: Error, CustomStringConvertible {
    package let description: String
  }

  package let kind: Kind
  package let port: UInt16
  /// May make buckets.
  package let owner = S3Credentials(accessKey: "OWNER", secretKey: "the owner's secret/+=")
  /// May list, read and write objects.
  package let user = S3Credentials(accessKey: "USER", secretKey: "a user's secret/+=")

  package var endpoint: String { "http://127.0.0.1:\(port)" }

  /// The one that runs already, else a new one.
  ///
  /// - Throws: `Missing` when it is not installed or does not come up.
  package static func running(_ kind: Kind) throws -> S3Server {
    try shared.withLock { servers in
      if let server = servers[kind] { return try server.get() }
      let server = Result { try S3Server(kind) }
      servers[kind] = server
      return try server.get()
    }
  }

  private static let shared = Locked<[Kind: Result<S3Server, any Error>]>([:])

  /// What `scripts/venv` makes.
  package static let environment = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .appending(path: ".venv/bin").path

  private init(_ kind: Kind) throws {
    self.kind = kind
    let program = Self.environment + "/" + kind.rawValue
    guard FileManager.default.isExecutableFile(atPath: program) else {
      throw Missing(description: "\(program) is not there: run scripts/venv")
    }
    for _ in 0..<3 {
      let first = Self.freePorts(8)
      try Self.start(program, kind, first, owner, user)
      if Self.waitUntilReady(first, kind) {
        port = first
        return
      }
    }
    throw Missing(description: "\(program) does not come up")
  }

  /// The shell ends the server when the other end of its standard input is closed, which the
  /// kernel does when this process is gone.
  private static func start(
    _ program: String, _ kind: Kind, _ port: UInt16, _ owner: S3Credentials, _ user: S3Credentials
  ) throws {
    let scratch = try Scratch()
    let folder = scratch.path
    let arguments: [String]
    switch kind {
    case .moto: arguments = ["-H", "127.0.0.1", "-p", "\(port)"]
    case .seaweed:
      try scratch.file("identities.json", Array(identities(owner, user).utf8))
      try scratch.folder("data")
      let names = [
        "s3.port", "s3.port.grpc", "master.port", "master.port.grpc", "volume.port",
        "volume.port.grpc", "filer.port", "filer.port.grpc",
      ]
      arguments =
        [
          "server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-dir=data", "-filer", "-s3",
          "-s3.config=identities.json", "-s3.port.iceberg=0", "-s3.port.lance=0",
          "-master.telemetry=false", "-volume.max=2000", "-master.volumeSizeLimitMB=1024",
          "-volume.preStopSeconds=0", "-s3.localSocket=\(folder)/s3.sock",
          "-filer.localSocket=\(folder)/filer.sock",
        ] + names.enumerated().map { "-\($1)=\(port + UInt16($0))" }
    }
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/bin/sh")
    process.currentDirectoryURL = URL(fileURLWithPath: folder)
    // Its folder is the shell's to remove: nobody here lives long enough.
    process.arguments =
      [
        "-c",
        "\"$0\" \"$@\" </dev/null >log 2>&1 & read -r line; kill -9 $!; sleep 0.2; cd /; rm -rf \"$FOLDER\"",
        program,
      ] + arguments
    process.environment = ProcessInfo.processInfo.environment.merging(["FOLDER": folder]) { $1 }
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    var ends: [CInt] = [0, 0]
    guard pipe(&ends) == 0 else { throw Errno.last }
    // No child of this process may hold the writing end.
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    process.standardInput = FileHandle(fileDescriptor: ends[0], closeOnDealloc: true)
    try process.run()
    kept.withLock { $0.append(scratch) }
  }

  private static let kept = Locked<[Scratch]>([])

  private static func identities(_ owner: S3Credentials, _ user: S3Credentials) -> String {
    func identity(_ name: String, _ one: S3Credentials, _ actions: String) -> String {
      """
      {"name": "\(name)", "actions": [\(actions)],
       "credentials": [{"accessKey": "\(one.accessKey)", "secretKey": "\(one.secretKey)"}]}
      """
    }
    let (all, some) = (
      identity("owner", owner, "\"Admin\", \"Read\", \"Write\", \"List\", \"Tagging\""),
      identity("user", user, "\"Read\", \"Write\", \"List\", \"Tagging\"")
    )
    return "{\"identities\": [\(all), \(some)]}"
  }

  /// Ports in a row that nobody listens on, below those that the kernel gives away.
  private static func freePorts(_ count: UInt16) -> UInt16 {
    while true {
      let first = UInt16.random(in: 15_000..<31_000)
      let isFree = (first..<first + count).allSatisfy { port in
        do throws(Errno) {
          try RawConnection(to: port).cut()
          return false
        } catch {
          return true
        }
      }
      if isFree { return first }
    }
  }

  /// It answers an unsigned question: with a refusal, or at all.
  private static func waitUntilReady(_ port: UInt16, _ kind: Kind) -> Bool {
    guard Subprocess.waitForPort(port, within: .seconds(90)) else { return false }
    do {
      let client = try HTTPClient()
      defer { client.shutdown() }
      for _ in 0..<200 {
        do throws(StoreError) {
          let answer = try client.perform(
            HTTPRequest("GET", "http://127.0.0.1:\(port)/"), into: nil, Call())
          if answer.status == (kind == .moto ? 200 : 403) { return true }
        } catch {
          // Not yet.
        }
        usleep(50_000)
      }
    } catch {
      Log.error("no thread for a client: \(error)")
    }
    return false
  }
}
