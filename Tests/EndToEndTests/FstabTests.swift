import Foundation
import Glibc
import Testing

/// A machine whose mount(8) finds the program as `/sbin/mount.bucketfs`, and a configuration in
/// root's home, in a mount namespace of its own, with an environment as empty as at boot.
private final class BootedMachine {
  /// Whether this machine lets the tests make mount namespaces.
  static let isPossible =
    getuid() == 0 && FileManager.default.isExecutableFile(atPath: "/usr/bin/unshare")

  let project: Project
  var machine: Machine { project.machine }

  init() throws {
    project = try Project()
    project.emulator.createBucket("photos")
    let lines = [
      "[bucketfs]", "store=supabase", "url=http://127.0.0.1:\(project.port)",
      "key=\(project.emulator.serviceKey)",
    ]
    let home = try #require(machine.environment["HOME"])
    let folder = home + "/.config/bucketfs"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    try Data((lines.joined(separator: "\n") + "\n").utf8).write(
      to: URL(fileURLWithPath: folder + "/config"))
    chmod(folder + "/config", 0o600)
    let programs = try machine.scratch.folder("sbin")
    #expect(symlink(Child.products + "/bucketfs", programs + "/mount.bucketfs") == 0)
  }

  /// Runs lines of shell with `$M` as mount point and `$F` as fstab(5), which holds `line`.
  func boot(_ line: String, _ script: String) throws -> Outcome {
    let table = machine.scratch.path("fstab")
    try Data((line + "\n").utf8).write(to: URL(fileURLWithPath: table))
    let programs = machine.scratch.path("sbin")
    let home = try #require(machine.environment["HOME"])
    return try machine.run(
      "unshare", "--mount", "--propagation", "private", "sh", "-c",
      """
      mount --bind \(home) "$(getent passwd 0 | cut -d: -f6)"
      mount --bind \(programs) /usr/sbin
      exec env -i M=\(machine.mountpoint) F=\(table) /bin/sh -c '\(script)'
      """)
  }
}

@Suite(.serialized, .enabled(if: BootedMachine.isPossible)) struct FstabTests {
  @Test func aLineOfFstabMountsTheBucketAtBoot() throws {
    let boot = try BootedMachine()
    try boot.project.emulator.put("photos", "a/b.jpg", Array("picture".utf8))
    let outcome = try boot.boot(
      "bucketfs \(boot.machine.mountpoint) bucketfs nofail,_netdev,user,x-systemd.automount,noatime,"
        + "bucket=photos,uid=12,gid=34 0 0",
      """
      set -e
      mount --fstab $F $M
      findmnt -n -o FSTYPE,SOURCE $M
      stat -c "%u %g %s" $M/a/b.jpg
      cat $M/a/b.jpg
      umount $M
      ! findmnt $M
      """)
    #expect(outcome.code == 0, "\(outcome.error)")
    #expect(outcome.output == "fuse.bucketfs bucketfs\n12 34 7\npicture")
  }

  @Test func mountWithATypeTellsWhatIsWrongInItsOwnWords() throws {
    let boot = try BootedMachine()
    let outcome = try boot.boot(
      "", "mount -t bucketfs bucketfs $M -o max_agee=3; echo $?; findmnt $M")
    #expect(outcome.output == "2\n", "\(outcome.output)")
    #expect(outcome.error.contains("max_agee"), "\(outcome.error)")
  }
}
