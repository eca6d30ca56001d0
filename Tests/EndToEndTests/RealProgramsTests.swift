import BucketStore
import Foundation
import Platform
import StorageEmulator
import TestSupport
import Testing

/// What people use every day, on a mount of the built program: each step is done in a plain folder
/// too, and the store is to hold what lies there then.
@Suite(.serialized) struct RealProgramsTests {
  /// A line or more of sh(1), run in a folder with `$W` as what lies outside; 0 is success.
  private struct Step {
    let name: String
    let script: String

    init(_ name: String, _ script: String) {
      self.name = name
      self.script = script
    }
  }

  /// Makes, outside the mount, what programs are to work with.
  private static let preparation = """
    mkdir -p src/sub/deep newer kept
    for i in 0 1 2 3 4 5 6 7; do
      head -c $((i * 30000)) /dev/urandom > src/f$i; echo $i > src/sub/f$i
    done
    echo x > src/sub/deep/x; chmod 755 src/f1; chmod 600 src/f2
    touch -d '2001-02-03 04:05:06.123456789' src/f3 src/sub
    tar cf src.tar src && zip -qr src.zip src
    head -c 7000000 /dev/urandom > large.bin
    for name in sed vim-yes vim-auto office dd append copied rsynced zipped; do
      seq 1 5000 | sed "s/^/$name /" > kept/$name
    done
    sqlite3 kept/stored.db 'create table t(a); insert into t values (1), (2);'
    (cd kept && zip -qX archive.zip zipped)
    seq 7000 > newer/rsynced; touch -d '2024-05-06 07:08:09' newer/rsynced
    """

  /// A file of its own: made, filled, changed, replaced, removed.
  private static let fresh = [
    Step("cp", "cp -a $W/src cpa && diff -r $W/src cpa"),
    Step(
      "rsync",
      "rsync -a $W/src/ rs/ && diff -r $W/src rs && [ -z \"$(rsync -ai $W/src/ rs/)\" ]"),
    Step("tar", "mkdir tarred && tar xf $W/src.tar -C tarred && diff -r $W/src tarred/src"),
    Step("unzip", "unzip -q $W/src.zip -d uz && diff -r $W/src uz/src"),
    Step(
      "git",
      """
      mkdir g && cd g && git init -q . && git config user.email a@b && git config user.name n
      cp -r $W/src/sub . && git add . && git commit -qm one && echo more >> sub/f1
      git commit -qam two && git checkout -q -b side HEAD~1 && git rm -q sub/f2
      git commit -qm three && git checkout -q - && git merge -q -m four side && git gc -q
      git fsck --strict --no-progress && [ -z "$(git status --short)" ]
      [ "$(git log --oneline | wc -l)" = 4 ]
      """),
    Step(
      "sqlite",
      """
      for mode in delete truncate persist wal; do
        sqlite3 $mode.db "pragma journal_mode=$mode; create table t(a);
          with recursive n(i) as (values(1) union all select i + 1 from n where i < 1000)
            insert into t select i from n;" > /dev/null
        sqlite3 $mode.db 'update t set a = a + 1; begin; delete from t; rollback; vacuum;'
        [ "$(sqlite3 $mode.db 'select sum(a) from t; pragma integrity_check;')" = "501500
      ok" ]
      done
      """),
    Step("sed", "seq 9 > sed.txt && sed -i 's/5/five/' sed.txt && grep -qx five sed.txt"),
    Step("vim, backup by rename", vim("vim-no.txt", "backup backupcopy=no")),
    Step("vim, backup by copy", vim("vim-yes.txt", "nobackup writebackup backupcopy=yes")),
    Step("vim, as it comes", vim("vim-auto.txt", "backupcopy&vim")),
    Step("lock and rename", "cp $W/src/f1 doc.odt\n" + office("doc.odt", "$W/src/f2")),
    Step(
      "dd",
      """
      dd if=$W/src/f7 of=seek.bin bs=1000 seek=100 count=5 status=none
      dd if=/dev/zero of=seek.bin bs=1 seek=5 count=10 conv=notrunc status=none
      dd if=$W/src/f3 of=seek.bin bs=777 seek=3 skip=2 conv=notrunc,fsync status=none
      dd if=$W/src/f2 of=seek.bin bs=4k oflag=append conv=notrunc status=none
      [ $(stat -c %s seek.bin) = 165000 ]
      """),
    Step(
      "append", "for i in 1 2 3 4 5 6 7 8 9; do echo $i >> log.txt; done; seq 9 | cmp - log.txt"),
    Step("large", "cp $W/large.bin . && cmp $W/large.bin large.bin"),
    Step(
      "zip", "cp $W/src.zip a.zip && (cd $W/src && zip -qX $OLDPWD/a.zip f0) && unzip -qt a.zip"),
    Step(
      "mv",
      "mv cpa moved && diff -r $W/src moved && [ ! -e cpa ] && mkdir apart && mv sed.txt apart/sed2.txt"
    ),
    Step(
      "rm", "cp -r $W/src gone && rm -r gone && [ ! -e gone ] && rm -r tarred && [ ! -e tarred ]"),
  ]

  /// Changes of what the store has already, that need no more of it than its bytes.
  private static let changes = [
    Step("sed", "sed -i 's/^sed 77$/changed/' kept/sed && grep -qx changed kept/sed"),
    Step("vim, backup by copy", vim("kept/vim-yes", "nobackup writebackup backupcopy=yes")),
    Step("vim, as it comes", vim("kept/vim-auto", "backupcopy&vim")),
    Step("lock and rename", office("kept/office", "$W/src/f4")),
    Step("dd", "dd if=$W/src/f1 of=kept/dd bs=1000 seek=2 count=3 conv=notrunc status=none"),
    Step(
      "append", "echo one >> kept/append; echo two >> kept/append; tail -n 1 kept/append | grep two"
    ),
    Step("cp", "cp $W/src/f5 kept/copied && cmp $W/src/f5 kept/copied"),
    Step("rsync", "rsync -a $W/newer/ kept/ && [ -z \"$(rsync -ai $W/newer/ kept/)\" ]"),
    Step("sqlite", "sqlite3 kept/stored.db 'insert into t values (3); update t set a = a * 2;'"),
  ]

  /// Changes of what the store has that the store itself must make.
  private static let removals = [
    Step("mv", "mv kept/dd kept/other && mv kept/append apart/ && [ ! -e kept/dd ]"),
    Step("vim, backup by rename", vim("kept/sed", "backup backupcopy=no")),
    Step("vim, as it comes", vim("kept/office", "backupcopy&vim")),
    Step("rsync", "rsync -a --delete $W/newer/ uz/src/ && diff -r $W/newer uz/src"),
    Step(
      "unzip",
      "echo other > kept/zipped && unzip -qo kept/archive.zip -d kept && cmp $W/kept/zipped kept/zipped"
    ),
    Step(
      "git",
      "cd g && echo x > sub/f9 && git add . && git commit -qm five && git gc -q --prune=now"
        + " && git fsck --strict --no-progress && [ -z \"$(git status --short)\" ]"),
    Step("sqlite", "sqlite3 delete.db 'delete from t where a > 500; vacuum;'"),
    Step("rm", "rm -r rs && [ ! -e rs ]"),
  ]

  /// Appends a line with vim(1), swap file and all.
  private static func vim(_ file: String, _ settings: String) -> String {
    """
    [ -e \(file) ] || seq 1 300 > \(file)
    chmod 640 \(file)
    vim -es -Nu NONE --cmd 'set backupskip= \(settings)' -c 'call append("$", "by vim")' \
      -c 'call writefile([swapname("%")], $W . "/swap")' -c 'wq!' \(file)
    grep -q 'swp$' $W/swap && tail -n 1 \(file) | grep -qx 'by vim'
    [ $(stat -c %a \(file)) = 640 ] && [ ! -e "$(cat $W/swap)" ]
    """
  }

  /// Saves as LibreOffice does: a lock beside the file, a new file with a name of its own, which
  /// then takes the old one's place.
  private static func office(_ file: String, _ content: String) -> String {
    """
    cat > $W/office.py <<'TEXT'
    import os, sys
    file, content = sys.argv[1:]
    folder, name = os.path.split(file)
    lock = os.path.join(folder, f".~lock.{name}#")
    held = os.open(lock, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o644)
    os.write(held, b",root,host,01.02.2024 03:04,file:///root/.config;")
    os.close(held)
    with open(file, "rb") as old: old.read(100)
    new = os.path.join(folder, "lu4242abc.tmp")
    bytes = open(content, "rb").read()
    with open(new, "xb") as out:
        out.write(bytes[:1000]); out.flush(); out.write(bytes[1000:]); out.flush()
        os.fsync(out.fileno())
    os.chmod(new, os.stat(file).st_mode & 0o777)
    os.rename(new, file)
    assert open(lock, "rb").read().startswith(b",root")
    os.unlink(lock)
    assert open(file, "rb").read() == bytes and not os.path.exists(lock)
    TEXT
    python3 $W/office.py \(file) \(content)
    """
  }

  private let project: Project
  private var machine: Machine { project.machine }
  private static let options = "max_age=1,bucket=album"

  init() throws {
    project = try Project()
    project.emulator.createBucket("album")
    let prepared = try machine.shell(
      "mkdir outside beside && cd outside && set -e\n" + Self.preparation)
    try #require(prepared.code == 0, "\(prepared)")
    let names = try FileManager.default.contentsOfDirectory(
      atPath: machine.scratch.path("outside/kept"))
    for name in names {
      let bytes = try File.contents(
        of: machine.scratch.path("outside/kept/\(name)"), limit: 1 << 20)
      try project.emulator.put("album", ByteString("kept/\(name)"), bytes)
    }
    #expect(try machine.shell("cp -a outside/kept beside/").code == 0)
  }

  /// Does each step in the mount and in the plain folder.
  private func run(_ steps: [Step]) throws {
    for step in steps {
      for folder in [machine.mountpoint, machine.scratch.path("beside")] {
        let outcome = try machine.shell(
          """
          export W='\(machine.scratch.path("outside"))' GIT_CONFIG_GLOBAL=/dev/null
          cd '\(folder)' && set -e
          \(step.script)
          """, timeout: 120)
        #expect(
          outcome.code == 0,
          "\(step.name) in \(folder): \(outcome.code) \(outcome.output)\(outcome.error)")
      }
    }
  }

  /// Every file below a folder, by its path there.
  private func files(of folder: String) throws -> [String: [UInt8]] {
    let list = try machine.run("find", folder, "-type", "f", "-printf", "%P\\n")
    try #require(list.code == 0, "\(list.error)")
    var files: [String: [UInt8]] = [:]
    for path in list.output.split(separator: "\n").map(String.init) {
      files[path] = try File.contents(of: folder + "/" + path, limit: 1 << 30)
    }
    return files
  }

  /// Looks whether the store, and who sees it for the first time, has what the plain folder has.
  private func compare() throws {
    let there = try files(of: machine.mountpoint)
    var expected = try files(of: machine.scratch.path("beside")).filter {
      !$0.key.hasPrefix("g/.git/")
    }
    // Git keeps inode numbers and times: its own files are like those in the mount.
    for (path, bytes) in there where path.hasPrefix("g/.git/") { expected[path] = bytes }
    #expect(
      Set(there.keys) == Set(expected.keys), "\(Set(there.keys).symmetricDifference(expected.keys))"
    )
    #expect(there.filter { expected[$0.key] != $0.value }.keys.sorted() == [])
    var wanted: [ByteString: String] = [:]
    for path in expected.keys {
      wanted[try #require(KeyEncoding.encode.encode(ByteString(path)))] = path
    }
    let keys = project.emulator.keys("album").filter { key in
      key.split(at: ByteString.slash).last != ".emptyFolderPlaceholder"
    }
    #expect(Set(keys) == Set(wanted.keys), "\(Set(keys).symmetricDifference(wanted.keys))")
    for key in keys {
      guard let path = wanted[key] else { continue }
      #expect(try project.emulator.bytes("album", key) == expected[path], "\(path)")
    }
    let other = try Machine(environment: ["SUPABASE_KEY": project.emulator.serviceKey])
    try other.mount(project.source, Self.options)
    let same = try other.run(
      "diff", "-r", "--exclude=.git", machine.scratch.path("beside"), other.mountpoint)
    #expect(same.code == 0 && same.output == "", "\(same)")
    let fsck = try other.shell(
      "cd \"$M/g\" && git -c safe.directory='*' fsck --strict --no-progress && git status --short")
    #expect(fsck.code == 0 && fsck.output == "", "\(fsck)")
    try other.unmount()
  }

  /// A second run of rsync(1), which is to find nothing to do.
  private func expectNothingToTransfer() throws {
    let again = try machine.shell("rsync -ai outside/src/ \"$M/moved/\"")
    #expect(again.output == "", "\(again)")
  }

  /// How the store is while programs write.
  private enum Reach: CaseIterable {
    case near
    /// Each upload is on its way for a while, so that programs meet their files there.
    case slow
    case away
  }

  @Test(.timeLimit(.minutes(10)), arguments: Reach.allCases)
  private func whatProgramsWriteIsInTheStoreExactly(_ reach: Reach) throws {
    try project.mount(Self.options)
    #expect(try machine.shell(#"cat "$M"/kept/* > kept.bin && ls -R "$M""#).code == 0)
    switch reach {
    case .near: break
    case .slow:
      project.emulator.setFault(
        Fault(route: "upload", effect: .commitDelay(.milliseconds(300))))
    case .away: project.emulator.stop()
    }
    try run(Self.fresh)
    try run(Self.changes)
    if reach == .away {
      try expectNothingToTransfer()
      try project.emulator.start(port: project.port)
      #expect(try machine.bucketfs("online", machine.mountpoint).code == 0)
    }
    let wait = try project.wait(200)
    let left = try project.queue()
    #expect(wait.code == 0, "\(wait.error)\(left)")
    try compare()
    try expectNothingToTransfer()
    try machine.unmount()
    try project.mount(Self.options)
    try expectNothingToTransfer()
    // What is stored by now can be renamed and removed.
    try run(Self.removals)
    let rest = try project.wait(200)
    let last = try project.queue()
    #expect(rest.code == 0, "\(rest.error)\(last)")
    try compare()
    try machine.unmount()
  }
}
