import Foundation
import Platform
import Testing
import TestSupport

extension MountTests {
  /// What people run on a mount, over a tree of folders, odd names and sizes.
  @Suite struct Programs {
    /// A bucket in a plain folder, which is what the programs' results are compared with.
    private func fixture() throws -> DirectoryFixture {
      let fixture = try DirectoryFixture()
      try fixture.createBucket("b")
      var random = SeededGenerator(seed: 7)
      for (name, size) in [
        ("empty", 0), ("one", 1), ("page", 4096), ("over", 4097), ("big.bin", 3_000_001),
      ] {
        try fixture.put("b", "sizes/\(name)", random.bytes(size))
      }
      for name in [
        "with space", "quote\"s", "it's", "-dash", "%41%2e%2e", "a+b&c=d;e?f#g", "ü-composed",
        "u\u{308}-decomposed", "日本語", "…", "~tilde", "{brace}", String(repeating: "n", count: 255),
      ] {
        try fixture.put("b", "odd/\(name)", Array(name.utf8))
      }
      for folder in 0..<10 {
        for file in 0..<10 {
          try fixture.put("b", "tree/d\(folder)/e\(file)/f", Array("\(folder) \(file)\n".utf8))
        }
      }
      return fixture
    }

    @Test func lsFindAndDuSeeTheSameTreeAsInTheStore() throws {
      let fixture = try fixture()
      try Mounted.use(fixture.store, at: try Scratch()) { (mounted) throws in
        for line in [
          "find . | LC_ALL=C sort", "find . -type f -printf '%p %s %T@\\n' | LC_ALL=C sort",
          "find . -type f -size +3k | LC_ALL=C sort", "ls -A1R .", "du -b --apparent-size sizes/*",
        ] {
          let here = try Shell.run(line, in: mounted.path + "/b")
          let there = try Shell.run(line, in: fixture.path + "/b")
          #expect(here.output == there.output, "\(line)")
          #expect(here.errors == "")
          #expect(!here.output.isEmpty)
        }
        let disk = try Shell.run("du -s --block-size=1 sizes/big.bin", in: mounted.path + "/b")
        #expect(disk.output.hasPrefix("3000320\t"))
      }
    }

    @Test func tarPacksWhatTheStoreHolds() throws {
      let fixture = try fixture()
      let scratch = try Scratch()
      try scratch.folder("out")
      try Mounted.use(fixture.store, at: scratch) { (mounted) throws in
        let packed = try Shell.run(
          "tar cf - b | tar xf - -C '\(scratch.path)/out'", in: mounted.path)
        #expect(packed.errors == "")
        let same = try Shell.run("diff -r '\(fixture.path)/b' out/b", in: scratch.path)
        #expect(same.code == 0 && same.output == "", "\(same)")
      }
    }

    @Test func rsyncTransfersNothingTheSecondTime() throws {
      let fixture = try fixture()
      let scratch = try Scratch()
      try Mounted.use(fixture.store, at: scratch) { (mounted) throws in
        let line = "rsync -a --stats '\(mounted.path)/b/' '\(scratch.path)/copy/'"
        let first = try Shell.run(line)
        #expect(first.output.contains("Number of regular files transferred: 118"), "\(first)")
        #expect(first.code == 0)
        let second = try Shell.run(line)
        #expect(second.output.contains("Number of regular files transferred: 0"), "\(second)")
        #expect(try Shell.run("diff -r '\(fixture.path)/b' copy", in: scratch.path).code == 0)
      }
    }

    @Test func cpAndCmpAgreeOnEveryByte() throws {
      let fixture = try fixture()
      let scratch = try Scratch()
      try Mounted.use(fixture.store, at: scratch) { (mounted) throws in
        let copied = try Shell.run("cp -r '\(mounted.path)/b/sizes' copy", in: scratch.path)
        #expect(copied.code == 0 && copied.errors == "", "\(copied)")
        for name in ["empty", "one", "page", "over", "big.bin"] {
          let there = "'\(fixture.path)/b/sizes/\(name)'"
          #expect(try Shell.run("cmp copy/\(name) \(there)", in: scratch.path).code == 0)
          #expect(try Shell.run("cmp '\(mounted.path)/b/sizes/\(name)' \(there)").code == 0)
        }
      }
    }

    @Test func aFileCanBeReadFromTheMiddleAndThroughAMap() throws {
      let fixture = try fixture()
      try Mounted.use(fixture.store, at: try Scratch()) { (mounted) throws in
        let part = "dd if=sizes/big.bin bs=1000 skip=1234 count=7 status=none | sha256sum"
        let here = try Shell.run(part, in: mounted.path + "/b")
        #expect(here.output == (try Shell.run(part, in: fixture.path + "/b").output))
        let map = """
          python3 -c '
          import hashlib, mmap
          with open("sizes/big.bin", "rb") as file:
            view = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
            print(len(view), hashlib.sha256(view[2999000:]).hexdigest(), view[17], view[1500000])
          '
          """
        let mapped = try Shell.run(map, in: mounted.path + "/b")
        #expect(mapped.errors == "" && mapped.output.hasPrefix("3000001 "))
        #expect(mapped.output == (try Shell.run(map, in: fixture.path + "/b").output))
        let past = "dd if=sizes/one bs=1 skip=5 count=1 status=none | wc -c"
        #expect(try Shell.run(past, in: mounted.path + "/b").lines == ["0"])
      }
    }

    @Test func aNameThatIsNoTextIsListedAndRead() throws {
      let store = MemoryStore()
      store.createBucket("b")
      store.put("b", ByteString([0xFF, 0x61, 0xC3] as [UInt8]), Array("read\n".utf8))
      try Mounted.use(store, at: try Scratch()) { (mounted) throws in
        let names = try Shell.run("ls b | od -An -tx1; cat b/*", in: mounted.path)
        #expect(names.output == " ff 61 c3 0a\nread\n", "\(names)")
        let one = try Shell.run(#"cat "$(printf 'b/\377a\303')""#, in: mounted.path)
        #expect(one.output == "read\n", "\(one)")
      }
    }

    @Test func tenWalksAtOnceAllSeeEverything() throws {
      let fixture = try fixture()
      try Mounted.use(fixture.store, at: try Scratch()) { (mounted) throws in
        let line = """
          for n in 1 2 3 4 5 6 7 8 9 10; do find tree -type f | wc -l & done; wait
          """
        let outcome = try Shell.run(line, in: mounted.path + "/b")
        #expect(outcome.lines == Array(repeating: "100", count: 10))
        #expect(outcome.errors == "")
      }
    }

    @Test func threadsOfOneProcessReadTogether() throws {
      let fixture = try fixture()
      try Mounted.use(fixture.store, at: try Scratch()) { (mounted) throws in
        let script = """
          python3 -c '
          import concurrent.futures, hashlib
          def read(_):
            with open("sizes/big.bin", "rb") as file: return hashlib.sha256(file.read()).hexdigest()
          with concurrent.futures.ThreadPoolExecutor(16) as pool: print(set(pool.map(read, range(64))))
          '
          """
        let outcome = try Shell.run(script, in: mounted.path + "/b")
        let sum = try Shell.run("sha256sum < sizes/big.bin", in: fixture.path + "/b").output.prefix(
          64)
        #expect(outcome.output == "{'\(sum)'}\n", "\(outcome)")
      }
    }

    @Test func inodeNumbersAreTheSameAfterARemount() throws {
      let fixture = try fixture()
      let scratch = try Scratch()
      let line = "find . -printf '%i %p\\n' | LC_ALL=C sort -k2"
      var seen: [String] = []
      for round in 0..<2 {
        try Mounted.use(fixture.store, at: scratch) { (mounted) throws in
          // Found in another order the second time.
          if round == 1 { _ = try Shell.run("ls -lf b/tree/d9 b/odd", in: mounted.path) }
          seen.append(try Shell.run(line, in: mounted.path).output)
        }
      }
      #expect(seen[0] == seen[1])
      let numbers = seen[0].split(separator: "\n").map { $0.prefix { $0 != " " } }
      #expect(numbers.count > 200 && Set(numbers).count == numbers.count)
    }

    @Test func dfAndAccessAnswer() throws {
      let fixture = try fixture()
      try Mounted.use(fixture.store, at: try Scratch()) { (mounted) throws in
        let df = try Shell.run("df --output=source,fstype .", in: mounted.path)
        #expect(df.lines.last?.split(separator: " ") == ["test", "fuse.bucketfs"], "\(df)")
        #expect(try Shell.run("test -r b/sizes/one", in: mounted.path).code == 0)
        #expect(try Shell.run("test -x b/sizes/one", in: mounted.path).code == 1)
        #expect(try Shell.run("test -e b/sizes/none", in: mounted.path).code == 1)
      }
    }
  }
}
