import BucketStore
import Foundation
import PendingQueue
import Platform
import TestSupport
import Testing

extension MountTests {
  /// What people use every day, on what is pending and on what is stored, and what the store then has.
  @Suite struct WritingProgramTests {
    private static let source = """
      mkdir -p src/sub/deep
      for i in 0 1 2 3 4 5 6 7; do
        head -c $((i * 30000)) /dev/urandom > src/f$i; echo $i > src/sub/f$i
      done
      echo x > src/sub/deep/x; chmod 755 src/f1; chmod 600 src/f2
      touch -d '2001-02-03 04:05:06.123456789' src/f3 src/sub
      tar cf src.tar src
      python3 -c 'import shutil; shutil.make_archive("src", "zip", ".", "src")'
      """

    /// One line `ok` for each step that did what it should.
    private static let programs = """
      ok() { if [ $? -eq 0 ]; then echo "ok $1"; else echo "FAILED $1"; fi; }
      cp -a $WORK/src cpa && diff -r $WORK/src cpa; ok cp
      rsync -a $WORK/src/ rs/ && [ -z "$(rsync -ai $WORK/src/ rs/)" ]; ok rsync
      tar xf $WORK/src.tar && diff -r $WORK/src src; ok tar
      mkdir uz && (cd uz && python3 -m zipfile -e $WORK/src.zip .) && diff -r $WORK/src uz/src; ok unzip
      export GIT_CONFIG_GLOBAL=/dev/null HOME=/nonexistent
      (mkdir g && cd g && git init -q . && git config user.email a@b && git config user.name n \\
        && cp -r $WORK/src/sub . && git add . && git commit -qm one && echo more >> sub/f1 \\
        && git commit -qam two && git gc -q && git fsck --strict 2>&1 && [ -z "$(git status --short)" ] \\
        && [ "$(git log --oneline | wc -l)" = 2 ]); ok git
      python3 -c '
      import sqlite3
      for mode in ["delete", "wal", "truncate"]:
        with sqlite3.connect(mode + ".sqlite") as db:
          assert db.execute("pragma journal_mode=" + mode).fetchall() == [(mode,)]
          db.execute("create table t(a)")
          db.executemany("insert into t values(?)", [(i,) for i in range(1000)])
        with sqlite3.connect(mode + ".sqlite") as db:
          db.execute("update t set a = a + 1"); db.commit(); db.execute("vacuum")
          assert db.execute("select sum(a) from t").fetchall() == [(500500,)]
          assert db.execute("pragma integrity_check").fetchall() == [("ok",)]
        db.close()
      '; ok sqlite
      printf 'one\\ntwo\\n' > edited.txt
      sed -i 's/one/three/' edited.txt && [ "$(cat edited.txt)" = "$(printf 'three\\ntwo')" ]; ok sed
      # As editors save: a backup by rename, then the new file; or a new file renamed over the old.
      mv edited.txt edited.txt~ && printf 'new\\n' > edited.txt && rm edited.txt~ \\
        && [ "$(cat edited.txt)" = new ]; ok 'backup by rename'
      touch .~lock.doc.odt# && cp $WORK/src/f1 doc.odt && cp $WORK/src/f2 lu1.tmp && mv lu1.tmp doc.odt \\
        && cmp doc.odt $WORK/src/f2 && rm .~lock.doc.odt#; ok 'lock and rename'
      dd if=$WORK/src/f7 of=seek.bin bs=1000 seek=100 count=5 status=none \\
        && dd if=/dev/zero of=seek.bin bs=1 seek=5 count=10 conv=notrunc status=none \\
        && [ $(stat -c %s seek.bin) = 105000 ]; ok dd
      mv cpa moved && diff -r $WORK/src moved && [ ! -e cpa ]; ok mv
      ! ln -s a b 2>/dev/null && ! ln doc.odt hard 2>/dev/null && ! mkfifo pipe 2>/dev/null; ok 'links refused'
      rm -r rs && [ ! -e rs ]; ok rm
      """

    @Test(arguments: [false, true]) func realProgramsWork(_ isHeld: Bool) throws {
      let scratch = try Scratch()
      let fixture = try DirectoryFixture()
      try fixture.createBucket("b")
      let store = try #require(fixture.store as? any WritableStore)
      let work = scratch.path("work")
      try FileManager.default.createDirectory(atPath: work, withIntermediateDirectories: false)
      let made = try Shell.run(Self.source, in: work)
      #expect(made.code == 0, "\(made)")
      let gate = Locked(isHeld ? UploadGate.offline : .open)
      let writing = Writing(
        directory: scratch.path("data"), gate: { gate.withLock { $0 } })
      try Mounted.write(store, at: scratch, writing) { mounted in
        let run = try Shell.run(
          "export WORK=\(work)\n" + Self.programs, in: mounted.path + "/b", limit: 120)
        let failed = run.lines.filter { !$0.hasPrefix("ok ") }
        #expect(failed == [] && run.lines.count == 13, "\(run)")
        gate.withLock { $0 = .open }
        mounted.fileSystem.queue?.gateChanged()
        #expect(try mounted.drain() == .stored)
        let same = try Shell.run(
          "diff -r -x .emptyFolderPlaceholder \(mounted.path)/b \(fixture.path)/b")
        #expect(same.output == "" && same.code == 0, "\(same)")
        // What was stored is read back as it was written, times and all.
        let again = try Shell.run("rsync -ai \(work)/src/ moved/", in: mounted.path + "/b")
        #expect(again.output == "", "\(again)")
      }
      try Mounted.write(store, at: scratch, writing) { mounted in
        let again = try Shell.run("rsync -ai \(work)/src/ moved/", in: mounted.path + "/b")
        #expect(again.output == "", "\(again)")
      }
    }

    @Test(.enabled(if: geteuid() == 0, "mounting a small disk needs root"))
    func aFullDiskIsToldToTheWriterAndTheMountLivesOn() throws {
      let scratch = try Scratch()
      let store = MemoryStore()
      store.createBucket("b")
      let disk = scratch.path("data")
      mkdir(disk, 0o700)
      try #require(mount("tmpfs", disk, "tmpfs", 0, "size=4m,mode=700") == 0)
      defer { umount2(disk, Int32(MNT_DETACH)) }
      let gate = Locked(UploadGate.offline)
      let writing = Writing(directory: disk, gate: { gate.withLock { $0 } })
      try Mounted.write(store, at: scratch, writing, expecting: ["No space left"]) { mounted in
        let script = """
          echo kept > kept
          head -c 3000000 /dev/zero > first && echo first
          head -c 3000000 /dev/zero > second || echo full
          cat kept; ls; stat -f -c %a . | awk '{ print ($1 * 4096 < 1500000) ? "little room" : $1 }'
          rm second && echo again > third && cat third
          """
        let run = try Shell.run(script, in: mounted.path + "/b")
        #expect(
          run.output == "first\nfull\nkept\nfirst\nkept\nsecond\nlittle room\nagain\n", "\(run)")
        gate.withLock { $0 = .open }
        mounted.fileSystem.queue?.gateChanged()
        #expect(try mounted.drain() == .stored)
        #expect(store.keys("b") == ["first", "kept", "third"])
        #expect(store.bytes("b", "first") == [UInt8](repeating: 0, count: 3_000_000))
      }
    }
  }
}
