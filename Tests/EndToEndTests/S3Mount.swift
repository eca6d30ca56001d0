import BucketStore
import Foundation
import Platform
import TestSupport
import Testing

/// Buckets of a real server of S3 behind a line that can be cut, and a machine that mounts them.
final class S3Mount: Sendable {
  let fixture: S3Fixture
  let line: Relay
  let machine: Machine
  /// The bucket's name at the server.
  let bucket: String

  init(_ kind: S3Server.Kind = .seaweed) throws {
    fixture = try S3Fixture(kind)
    try fixture.createBucket("album")
    bucket = fixture.bucket("album").description
    line = try Relay(to: fixture.server.port)
    machine = try Machine(environment: [
      "AWS_ACCESS_KEY_ID": fixture.server.user.accessKey,
      "AWS_SECRET_ACCESS_KEY": fixture.server.user.secretKey,
      "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:\(line.port)",
    ])
  }

  deinit {
    line.stop()
  }

  var source: String { "s3://\(bucket)" }

  func mount(_ options: String = "max_age=1") throws { try machine.mount(source, options) }

  /// Mounts a program that kills itself at a named step, and expects it to come up.
  func mount(killedAt step: String) throws {
    let outcome = try machine.run(
      "env", "BUCKETFS_CRASH_AT=\(step)", Child.products + "/bucketfs", "mount", source,
      machine.mountpoint, "-o", "max_age=1")
    try #require(outcome.code == 0, "mount: \(outcome.error)")
  }

  /// The path of an object in the mount.
  func path(_ name: String) -> String { machine.mountpoint + "/" + name }

  /// Reads a file of the mount as a program does.
  func read(_ name: String) throws -> [UInt8] { try File.contents(of: path(name), limit: 1 << 30) }

  func write(_ name: String, _ bytes: [UInt8]) throws {
    try Data(bytes).write(to: URL(fileURLWithPath: path(name)))
  }

  /// Waits until everything is uploaded.
  func wait(_ seconds: Int = 60) throws {
    let outcome = try machine.bucketfs(
      "wait", machine.mountpoint, "--timeout", "\(seconds)s", timeout: Double(seconds) + 30)
    try #require(outcome.code == 0, "wait: \(outcome.error)")
  }

  /// The bytes that the server has, past the mount.
  func stored(_ key: String) throws -> [UInt8]? {
    let sink = CollectingSink()
    do {
      _ = try fixture.makeStore().get(
        GetRequest(object: fixture.object("album", key)), into: sink, Call())
      return sink.bytes
    } catch {
      if error.kind == .notFound { return nil }
      throw error
    }
  }

  /// The keys that the server has, past the mount.
  func keys() throws -> [String] {
    let store = fixture.makeStore()
    var keys: [String] = []
    var prefixes: [ByteString] = [""]
    while let prefix = prefixes.popLast() {
      var request = ListRequest(
        bucket: fixture.bucket("album"), prefix: prefix, delimited: true)
      repeat {
        let page = try store.list(request, Call())
        keys += page.objects.map(\.key.description)
        prefixes += page.folders.filter { $0 != prefix }
        request.cursor = page.next
      } while request.cursor != nil
    }
    return Set(keys).sorted()
  }
}
