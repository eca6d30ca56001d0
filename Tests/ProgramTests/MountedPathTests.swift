import Glibc
import Mount
import Platform
import TestSupport
import Testing

@testable import bucketfs

struct MountedPathTests {
  private let scratch: Scratch
  private let mounts: Mounts
  private let mountpoint: ByteString

  init() throws {
    scratch = try Scratch()
    let root = try #require(realpath(scratch.path, nil))
    defer { free(root) }
    let folder = String(cString: root)
    mkdir(folder + "/mnt", 0o700)
    symlink("mnt", folder + "/link")
    symlink(folder + "/link/photos", folder + "/deep")
    symlink("loop", folder + "/loop")
    mountpoint = ByteString(folder + "/mnt")
    let line =
      "30 1 0:50 / \(folder)/mnt rw,nosuid - fuse.bucketfs dir:/a rw,user_id=1000,group_id=0\n"
      + "31 1 0:51 / /elsewhere rw - ext4 /dev/sda rw\n"
    mounts = Mounts(entries: MountTable.entries(of: Array(line.utf8)))
  }

  private func inside(_ path: ByteString) throws(Complaint) -> ByteString {
    let path = try MountedPath(path, in: mounts)
    #expect(path.mount.path == mountpoint)
    return path.inside
  }

  @Test func aPathIsSplitAtItsMount() throws {
    #expect(try inside(mountpoint) == "")
    #expect(try inside(mountpoint + "/") == "")
    #expect(try inside(mountpoint + "/photos/a.jpg") == "photos/a.jpg")
    #expect(try inside(mountpoint + "//photos/./a.jpg/") == "photos/a.jpg")
  }

  @Test func linksOutsideTheMountAreFollowed() throws {
    let folder = mountpoint.dropLast(4)
    #expect(try inside(folder + "/link/a") == "a")
    #expect(try inside(folder + "/deep/a") == "photos/a")
    #expect(try inside(folder + "/mnt2/../link/a") == "a")
  }

  @Test func theMountsUserIsKnown() throws {
    #expect(try MountedPath(mountpoint, in: mounts).mount.user == 1000)
  }

  @Test(arguments: ["/../x", "/a/../b", "/a\\b", "/a\nb", "/a/..", "/\u{7F}"])
  func unsafePathsAreRefused(path: String) throws {
    do throws(Complaint) {
      _ = try MountedPath(mountpoint + ByteString(path), in: mounts)
      Issue.record("accepted")
    } catch {
      #expect(error.code == .usage)
    }
  }

  @Test func pathsOutsideEveryMountAreTold() throws {
    let folder = mountpoint.dropLast(4)
    for path in [folder, folder + "/mnt2/a", folder + "/nothing/here", "/elsewhere/a"] {
      do throws(Complaint) {
        _ = try MountedPath(path, in: mounts)
        Issue.record("accepted: \(path)")
      } catch {
        #expect(error.code == .no)
      }
    }
  }

  @Test func linksThatGoInCirclesEnd() throws {
    do throws(Complaint) {
      _ = try MountedPath(mountpoint.dropLast(4) + "/loop/a", in: mounts)
      Issue.record("accepted")
    } catch {
      #expect(error.code == .usage)
    }
  }

  @Test func aMountThatIsCoveredIsNotOurs() {
    let text =
      "30 1 0:50 / /m rw - fuse.bucketfs a rw,user_id=0\n31 1 0:51 / /m rw - tmpfs none rw\n"
    let mounts = Mounts(entries: MountTable.entries(of: Array(text.utf8)))
    #expect(mounts.ours(at: "/m") == nil)
    #expect(mounts.ours.isEmpty)
  }
}
