import BucketStore
import Glibc
import Platform
import TestSupport
import Testing

@testable import bucketfs

/// Who may have a hand in the folder of the session and the log.
struct DataFolderTests {
  private let scratch: Scratch

  init() throws {
    scratch = try Scratch()
  }

  private func plan(_ folder: String) throws(Complaint) -> MountPlan {
    try MountPlan(
      source: "supabase:https://abc.supabase.co", lists: ["data_dir=\(scratch.path(folder))"],
      environment: SupabaseEnvironment(key: Secret("k")))
  }

  private func refusal(_ body: () throws(Complaint) -> Void) -> ExitCode? {
    do throws(Complaint) {
      try body()
      return nil
    } catch {
      return error.code
    }
  }

  @Test func itIsMadeForItsOwnerAlone() throws {
    try plan("a/b").prepareDataFolder()
    var facts = stat()
    #expect(stat(scratch.path("a/b"), &facts) == 0)
    #expect(facts.st_mode & 0o777 == 0o700)
  }

  @Test func oneThatOthersMayWriteToIsRefused() throws {
    let plan = try plan("shared")
    #expect(chmod(try scratch.folder("shared"), 0o777) == 0)
    #expect(refusal { () throws(Complaint) in try plan.prepareDataFolder() } == .refused)
  }

  @Test func oneBehindASymbolicLinkIsRefused() throws {
    let plan = try plan("link")
    #expect(symlink(try scratch.folder("real"), scratch.path("link")) == 0)
    #expect(refusal { () throws(Complaint) in try plan.prepareDataFolder() } == .refused)
  }

  @Test func aSessionThatOthersMayHaveWrittenIsNotUsed() throws {
    let plan = try plan("shared")
    try scratch.file("shared/session.json", Array("{}".utf8))
    #expect(chmod(scratch.path("shared"), 0o777) == 0)
    #expect(refusal { () throws(Complaint) in _ = try StoreParts(plan) } == .refused)
  }

  @Test func whoSignsInLaterDoesNotSendWhatNobodyWrote() throws {
    let plan = try plan("mended")
    try scratch.folder("mended")
    let file = try scratch.file("mended/session.json", Array("damaged".utf8))
    #expect(chmod(file, 0o600) == 0)
    let parts = try StoreParts(plan)
    defer { parts.stop() }
    #expect(parts.gate == .signedOut)
    try StoredSession(
      accessToken: "token", refreshToken: "r1", expires: Timestamp.now + .seconds(3_000),
      userID: "bob"
    ).save(file)
    #expect(parts.gate == .signedOut)
  }

  @Test func withoutASessionNoFolderIsMade() throws {
    let plan = try plan("none")
    #expect(try plan.checkedSessionFile() == nil)
    #expect(access(scratch.path("none"), F_OK) == -1)
  }
}
