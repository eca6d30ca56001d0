import Platform
import Testing

@testable import bucketfs

struct InvocationTests {
  private func read(_ verb: Verb, _ words: ByteString...) throws(Complaint) -> Invocation? {
    guard case .run(let invocation) = try Invocation.read(verb, words) else { return nil }
    return invocation
  }

  @Test func flagsMayStandAnywhere() throws {
    let invocation = try read(
      .mount, "-f", "dir:/a", "-o", "ro", "--json", "/mnt", "-oumask=077", "--options=insecure")
    #expect(invocation?.operands == ["dir:/a", "/mnt"])
    #expect(invocation?.options == ["ro", "umask=077", "insecure"])
    #expect(invocation?.foreground == true)
    #expect(invocation?.json == true)
  }

  @Test func afterTwoHyphensAllIsAnOperand() throws {
    #expect(try read(.cached, "--json", "--", "--help", "-f")?.operands == ["--help", "-f"])
  }

  @Test func operandsKeepTheirBytes() throws {
    let path = ByteString([0x2F, 0xFF, 0x80])
    #expect(try read(.cached, path)?.operands == [path])
  }

  @Test func helpIsToldApart() throws {
    #expect(try read(.status, "--help") == nil)
    #expect(try read(.mount, "-h") == nil)
  }

  @Test(
    arguments: [
      (Verb.mount, [], "an operand is missing"),
      (.mount, ["a", "b", "c"], "c is one operand too many"),
      (.unmount, [], "an operand is missing"), (.cached, [], "an operand is missing"),
      (.status, ["a", "b"], "b is one operand too many"),
      (.status, ["--jsno"], "unknown flag --jsno"),
      (.status, ["-f"], "unknown flag -f"), (.mount, ["/mnt", "-o"], "-o needs options"),
    ] as [(Verb, [ByteString], String)])
  func aWrongCommandLineIsRefused(verb: Verb, words: [ByteString], sentence: String) throws {
    do throws(Complaint) {
      _ = try Invocation.read(verb, words)
      Issue.record("accepted")
    } catch {
      #expect(error.code == .usage)
      #expect(error.sentence.contains(sentence))
    }
  }

  @Test func theCommandLineOfMountIsRead() throws {
    let invocation = try Invocation.readHelper([
      "bucketfs", "/mnt", "-sfnv", "-o", "rw,_netdev", "-t", "bucketfs", "-N", "ns",
    ])
    #expect(invocation.operands == ["bucketfs", "/mnt"])
    #expect(invocation.options == ["rw,_netdev"])
    #expect(invocation.sloppy && invocation.fake)
    #expect(!invocation.foreground)
  }

  @Test func mountNeedsSourceAndMountPoint() {
    #expect(throws: Complaint.self) { try Invocation.readHelper(["/mnt"]) }
    #expect(throws: Complaint.self) { try Invocation.readHelper(["a", "/mnt", "-z"]) }
  }
}
