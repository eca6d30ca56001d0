import Foundation
import Platform
import Testing
import TestSupport

extension MountTests {
  @Suite struct Refusals {
    /// Refused by the kernel on a read-only mount, and by us on one that is not.
    @Test(arguments: [true, false])
    func everyCallThatWritesSaysReadOnly(_ readOnly: Bool) throws {
      let fixture = try DirectoryFixture()
      try fixture.createBucket("b")
      try fixture.put("b", "folder/file", [1])
      let script = """
        python3 - <<'EOF'
        import errno, os
        calls = {
          "open to write": lambda: os.open("file", os.O_WRONLY),
          "open to change": lambda: os.open("file", os.O_RDWR),
          "open to cut": lambda: os.open("file", os.O_RDONLY | os.O_TRUNC),
          "create": lambda: os.open("new", os.O_CREAT | os.O_RDWR),
          "truncate": lambda: os.truncate("file", 0),
          "mkdir": lambda: os.mkdir("new"),
          "mkfifo": lambda: os.mkfifo("new"),
          "unlink": lambda: os.unlink("file"),
          "rmdir": lambda: os.rmdir("../folder"),
          "rename": lambda: os.rename("file", "new"),
          "link": lambda: os.link("file", "new"),
          "symlink": lambda: os.symlink("file", "new"),
          "chmod": lambda: os.chmod("file", 0o777),
          "chown": lambda: os.chown("file", 1, 1),
          "utime": lambda: os.utime("file", (1, 1)),
          "setxattr": lambda: os.setxattr("file", "user.x", b"1"),
          "removexattr": lambda: os.removexattr("file", "user.x"),
        }
        for name, call in calls.items():
          try:
            call()
            print(name, "succeeded")
          except OSError as error:
            if error.errno != errno.EROFS: print(name, error)
        print("tried", len(calls))
        EOF
        """.replacingOccurrences(of: "\n        ", with: "\n")
      try Mounted.use(fixture.store, at: try Scratch(), options: { $0.readOnly = readOnly }) {
        let outcome = try Shell.run(script, in: $0.path + "/b/folder")
        #expect(outcome.output == "tried 17\n", "\(outcome)")
        #expect(
          try Shell.run("cat file | od -An -tx1", in: $0.path + "/b/folder").output == " 01\n")
      }
    }
  }
}
