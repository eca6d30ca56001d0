import Foundation
import Platform
import Testing
import TestSupport

extension MountTests {
  @Suite struct Reading {
    @Test func aFolderIsListedAndAFileIsRead() throws {
      let fixture = try DirectoryFixture()
      try fixture.createBucket("photos")
      try fixture.put("photos", "2024/a.txt", Array("hello\n".utf8))
      try Mounted.use(fixture.store, at: try Scratch()) { (mounted) throws in
        let listing = try Shell.run("ls -A photos photos/2024", in: mounted.path)
        #expect(listing.output == "photos:\n2024\n\nphotos/2024:\na.txt\n")
        #expect(listing.code == 0)
        let long = try Shell.run("ls -la photos/2024/a.txt", in: mounted.path)
        #expect(long.output.hasPrefix("-r--r--r-- 1 root root 6 "))
        let text = try Shell.run("cat photos/2024/a.txt", in: mounted.path)
        #expect(text.output == "hello\n")
      }
    }
  }
}
