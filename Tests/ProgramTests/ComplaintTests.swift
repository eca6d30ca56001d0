import Foundation
import Platform
import TestSupport
import Testing

@testable import bucketfs

extension ProgramTests {
  /// Each mistake has its sentence, its hint and its exit code.
  @Suite struct Complaints {
    /// Runs `mount` with words in which SOURCE and MNT stand for the person's own.
    private func mount(_ person: Person, _ words: String) throws -> Person.Outcome {
      let words = words.split(separator: " ").map {
        $0.replacingOccurrences(of: "SOURCE", with: person.source)
          .replacingOccurrences(of: "MNT", with: person.mountpoint)
          .replacingOccurrences(of: "TMP", with: person.scratch.path)
      }
      return try person.run([Person.products + "/bucketfs", "mount"] + words)
    }

    @Test(
      arguments: [
        ("MNT", 2, "there is no profile bucketfs in", "add a section [bucketfs]"),
        ("camera MNT", 2, "there is no profile camera in", "add a section [camera]"),
        ("s3:bucket MNT", 2, "s3:bucket names no bucket", "write s3://bucket"),
        ("s3://bucket MNT", 2, "there are no credentials for S3", "AWS_ACCESS_KEY_ID"),
        ("s3://bucket MNT -o secret_key=x", 2, "a credential must not", "AWS_SECRET_ACCESS_KEY"),
        ("s3://bucket MNT -o endpoint=x,unsigned", 2, "“x” is no endpoint", ""),
        ("SOURCE MNT -o cach_size=1", 2, "unknown option cach_size", "did you mean cache_size?"),
        ("SOURCE MNT -o max_age=soon", 2, "soon is not a time", "write max_age=TIME"),
        ("SOURCE MNT -o key=k3y", 2, "a credential must not stand", "SUPABASE_KEY"),
        (
          "SOURCE MNT MNT", 2, "is one operand too many",
          "bucketfs mount [SOURCE] MOUNTPOINT"
        ),
        ("SOURCE TMP/nothing", 2, "nothing does not exist", "mkdir -p"),
        ("SOURCE TMP/file", 2, "is not a directory", "choose a directory"),
        ("SOURCE TMP/full", 5, "is not empty", "choose an empty directory"),
        ("dir:TMP/nothing MNT", 1, "nothing cannot be used", ""),
        ("SOURCE MNT -o bucket=music", 1, "there is no bucket music", "check its name"),
      ] as [(String, Int32, String, String)])
    func aMistakeHasItsSentenceHintAndCode(
      words: String, code: Int32, sentence: String, hint: String
    ) throws {
      let person = try Person()
      try person.scratch.file("file", [])
      try person.scratch.file("full/file", [])
      let outcome = try mount(person, words)
      #expect(outcome.code == code)
      #expect(outcome.output == "")
      #expect(outcome.error.hasPrefix("bucketfs: "))
      #expect(outcome.error.contains(sentence), "\(outcome.error)")
      #expect(outcome.error.contains("\nhint: ") == !hint.isEmpty)
      #expect(hint.isEmpty || outcome.error.contains(hint))
      #expect(!outcome.error.contains("k3y"))
      #expect(!person.isMounted)
    }

    @Test func theSameMistakeIsToldInJSON() throws {
      let person = try Person()
      for words in ["SOURCE MNT -o cach_size=1 --json", "SOURCE MNT -o bucket=music --json"] {
        let outcome = try mount(person, words)
        let report = try outcome.object()
        #expect(report.keys.sorted() == ["error", "exit", "hint"])
        #expect(report["exit"] as? Int == Int(outcome.code))
        #expect(outcome.error.contains(try #require(report["error"] as? String)))
      }
    }

    @Test func aConfigurationThatShowsItsKeyIsRefused() throws {
      let person = try Person()
      try person.configure("[bucketfs]\nurl = https://a.example\nkey = k3y\n", mode: 0o644)
      let outcome = try mount(person, "MNT")
      #expect(outcome.code == 5)
      #expect(outcome.error.contains("can be read by others and holds a credential"))
      #expect(outcome.error.contains("hint: chmod 600"))
      #expect(!outcome.error.contains("k3y"))
    }

    @Test func aSecondMountAtTheSamePlaceIsRefused() throws {
      let person = try Person()
      try person.mount()
      let outcome = try mount(person, "SOURCE MNT -o cache_dir=TMP/other,data_dir=TMP/data/other")
      #expect(outcome.code == 5)
      #expect(outcome.error.contains("is already a mount point"))
      #expect(try person.status()["state"] as? String == "serving")
      try person.unmount()
    }

    @Test(
      arguments: [
        (["fly"], 2), ([], 2), (["status", "/"], 1), (["cached", "/etc/passwd"], 1),
        (["unmount", "/"], 1), (["status", "--frob"], 2), (["--help"], 0), (["--version"], 0),
        (["mount", "--help"], 0), (["offline"], 2),
      ] as [([String], Int32)])
    func verbsEndWithTheirCode(words: [String], code: Int32) throws {
      let person = try Person()
      let outcome = try person.run([Person.products + "/bucketfs"] + words)
      #expect(outcome.code == code)
      #expect((outcome.output == "") == (code != 0))
      #expect((outcome.error == "") == (code == 0))
    }

    @Test func unsafePathsAreRefusedBeforeTheMountIsAsked() throws {
      let person = try Person()
      try person.mount()
      for path in ["/../x", "/photos/../../etc/passwd", "/photos/a\\b", "/photos/a\nb"] {
        for verb in ["ensure", "cached", "info"] {
          let outcome = try person.bucketfs(verb, person.mountpoint + path)
          #expect(outcome.code == 2, "\(verb) \(path)")
        }
      }
      try person.unmount()
    }

    @Test func aClosedOutputIsAFailure() throws {
      let person = try Person()
      let outcome = try person.run(
        ["/bin/sh", "-c", "\(Person.products)/bucketfs --help >/dev/full"])
      #expect(outcome.code == 3)
      #expect(outcome.error.contains("cannot be written"))
    }
  }
}
