import BucketStore
import Foundation
import Platform
import StorageEmulator
import TestSupport
import Testing

/// Files that are sent with a person's session, which expires, ends and is made anew.
@Suite(.serialized) struct SessionUploadTests {
  private let emulator: StorageEmulator
  private let machine: Machine
  private let url: String
  private let data: String

  init() throws {
    let people = ["ann", "bob"].map { name in
      Policies.User(
        email: "\(name)@example.org", password: name, policies: [Policies.Policy(bucket: "album")])
    }
    emulator = try StorageEmulator(Configuration(policies: Policies(users: people)))
    emulator.createBucket("album")
    url = "http://127.0.0.1:\(try emulator.start())"
    machine = try Machine(environment: ["SUPABASE_KEY": emulator.publishableKey])
    data = try machine.scratch.folder("data/own")
  }

  private func signIn(_ name: String) throws {
    let client = try HTTPClient()
    defer { client.shutdown() }
    let session = SupabaseSession(
      address: try SupabaseAddress(url), key: emulator.publishableKey,
      file: data + "/session.json", transport: client)
    try session.signIn(email: "\(name)@example.org", password: name, Call())
  }

  private func mount() throws -> Outcome {
    try machine.bucketfs(
      "mount", "supabase:\(url)", machine.mountpoint, "-o",
      "max_age=1,bucket=album,data_dir=\(data)")
  }

  private func write(_ name: String, _ text: String) throws {
    let outcome = try machine.shell("printf '\(text)' > \"$M/\(name)\"")
    try #require(outcome.code == 0, "\(outcome.error)")
  }

  private func records() throws -> [[String: Any]] {
    let outcome = try machine.bucketfs("queue", machine.mountpoint, "--json")
    return try #require(
      JSONSerialization.jsonObject(with: Data(outcome.output.utf8)) as? [[String: Any]])
  }

  private func text(_ key: ByteString) throws -> String? {
    try emulator.bytes("album", key).map { String(decoding: $0, as: UTF8.self) }
  }

  @Test(.timeLimit(.minutes(2)))
  func anExpiredTokenIsRenewedAndCostsNothing() throws {
    try signIn("ann")
    #expect(try mount().code == 0)
    try write("one", "1")
    #expect(try machine.bucketfs("wait", machine.mountpoint).code == 0)
    // The server's clock runs ahead: it refuses a token that looks good here.
    emulator.advanceClock(seconds: 4_000)
    try write("two", "2")
    let wait = try machine.bucketfs("wait", machine.mountpoint, "--timeout", "30s")
    #expect(wait.code == 0, "\(wait.error)")
    #expect(try text("one") == "1")
    #expect(try text("two") == "2")
    #expect(emulator.object("album", "two")?.owner == emulator.object("album", "one")?.owner)
    try machine.unmount()
  }

  @Test(.timeLimit(.minutes(3)))
  func withoutASessionFilesWaitAndGoOnceTheirOwnerIsSignedInAgain() throws {
    try signIn("ann")
    #expect(try mount().code == 0)
    try write("one", "1")
    #expect(try machine.bucketfs("wait", machine.mountpoint).code == 0)
    emulator.revokeSessions()
    emulator.advanceClock(seconds: 4_000)
    try write("two", "2")
    let wait = try machine.bucketfs("wait", machine.mountpoint, "--timeout", "30s")
    #expect(wait.code == 4)
    #expect(wait.error.contains("nobody is signed in"), "\(wait.error)")
    let record = try #require(try records().first)
    #expect(record["state"] as? String == "waiting")
    #expect(record["attempts"] as? Int == 0)
    #expect(try machine.shell(#"cat "$M/two""#).output == "2")
    #expect(try machine.status()["session"] as? String == "signedOut")

    // Signed in again while it is mounted: noticed without anybody asking.
    try signIn("ann")
    let end = Instant.now + .seconds(60)
    while try text("two") == nil, Instant.now < end { usleep(200_000) }
    #expect(try text("two") == "2")
    try machine.unmount()
  }

  @Test(.timeLimit(.minutes(3)))
  func somebodyElseWhoSignsInWhileItIsMountedSendsNothing() throws {
    try signIn("ann")
    #expect(try mount().code == 0)
    try write("one", "1")
    #expect(try machine.bucketfs("wait", machine.mountpoint).code == 0)
    emulator.revokeSessions()
    emulator.advanceClock(seconds: 4_000)
    try write("two", "2")
    #expect(try machine.bucketfs("wait", machine.mountpoint, "--timeout", "30s").code == 4)
    try signIn("bob")
    // Long enough for the new session to be noticed and tried.
    _ = try machine.bucketfs("wait", machine.mountpoint, "--timeout", "20s")
    #expect(try text("two") == nil)
    #expect(try records().first?["attempts"] as? Int == 0)
    try signIn("ann")
    let end = Instant.now + .seconds(60)
    while try text("two") == nil, Instant.now < end { usleep(200_000) }
    #expect(emulator.object("album", "two")?.owner == emulator.object("album", "one")?.owner)
    #expect(try text("two") == "2")
    try machine.unmount()
  }

  @Test(.timeLimit(.minutes(3)))
  func filesWaitForTheirOwnerAndAreNotSentBySomebodyElse() throws {
    try signIn("ann")
    #expect(try mount().code == 0)
    #expect(try machine.shell(#"ls "$M""#).output == "")
    #expect(try machine.bucketfs("offline", machine.mountpoint).code == 0)
    try write("one", "1")
    try machine.unmount()
    try signIn("bob")
    let other = try mount()
    #expect(other.error.contains("belongs to another account"), "\(other.error)")
    #expect(try machine.bucketfs("wait", machine.mountpoint).code == 0)
    #expect(try machine.shell(#"ls "$M""#).output == "")
    #expect(emulator.keys("album").isEmpty)
    try machine.unmount()
    try signIn("ann")
    let own = try mount()
    #expect(own.error.contains("1 file of an earlier mount"), "\(own.error)")
    #expect(try machine.bucketfs("online", machine.mountpoint).code == 0)
    #expect(try machine.bucketfs("wait", machine.mountpoint).code == 0)
    #expect(try text("one") == "1")
    try machine.unmount()
  }
}
