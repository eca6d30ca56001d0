@testable import Mount
import Platform
import Testing

/// What needs no mount.
@Suite struct MountOptionTests {
  @Test(arguments: [
    "rw", "defaults", "noauto", "nofail", "_netdev", "user", "x-systemd.automount", "X-mount.mkdir",
    "comment=systemd",
  ])
  func wordsForMountItselfAreDropped(_ word: String) {
    var options = MountOptions(mountPoint: "/m", source: "s")
    let before = options.libraryOptions
    let isTaken = options.take(word: word)
    #expect(isTaken)
    #expect(options.libraryOptions == before)
  }

  @Test func flagsOfTheKernelAreHandedOn() {
    var options = MountOptions(mountPoint: "/m", source: "s")
    options.readOnly = false
    for word in ["noexec", "sync", "ro", "allow_other", "nonempty"] {
      let isTaken = options.take(word: word)
      #expect(isTaken)
    }
    #expect(options.allowNonEmpty)
    let words = options.libraryOptions.split(separator: ",")
    #expect(words.suffix(4) == ["noexec", "sync", "ro", "allow_other"])
    #expect(words.contains("max_read=1048576") && words.contains("subtype=bucketfs"))
  }

  @Test(arguments: [
    "atime", "noatime", "diratime", "nodiratime", "relatime", "norelatime", "strictatime",
    "nostrictatime",
  ])
  func wordsForTimesOfAccessAreTakenAndChangeNothing(_ word: String) {
    var options = MountOptions(mountPoint: "/m", source: "s")
    let before = options.libraryOptions
    let isTaken = options.take(word: word)
    #expect(isTaken)
    #expect(options.libraryOptions == before)
  }

  @Test(arguments: ["max_age=1", "", "xattr", "cache_size=1G"])
  func otherWordsAreNotTaken(_ word: String) {
    var options = MountOptions(mountPoint: "/m", source: "s")
    let isTaken = options.take(word: word)
    #expect(!isTaken)
  }

  @Test func aSourceCannotSmuggleOptionsIn() {
    let options = MountOptions(mountPoint: "/m", source: #"a,allow_other,b\c"#)
    #expect(options.libraryOptions.hasPrefix(#"fsname=a\,allow_other\,b\\c,subtype="#))
  }

  @Test func aLineOfTheMountTableIsRead() throws {
    let line =
      #"36 25 0:52 / /mnt/a\040b\134c rw,nosuid shared:1 master:2 - fuse.bucketfs my\040src rw"#
    let entry = try #require(MountTable.parse(Array(line.utf8)))
    #expect(entry.device == "0:52")
    #expect(entry.path == #"/mnt/a b\c"#)
    #expect(entry.type == "fuse.bucketfs" && entry.isOurs)
    #expect(entry.source == "my src")
  }

  @Test(arguments: ["", "36 25 0:52", "1 2 3 4 5 6 7 8", "1 2 0:1 / /x rw -"])
  func aBrokenLineOfTheMountTableIsLeftOut(_ line: String) {
    #expect(MountTable.parse(Array(line.utf8)) == nil)
  }

  @Test func theMountTableHasTheRoot() throws {
    #expect(try MountTable.entry(at: "/") != nil)
    #expect(try MountTable.entry(at: "/no/such/place") == nil)
  }
}
