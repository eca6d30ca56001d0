import BucketStore
import Glibc
import Platform
import TestSupport
import Testing

/// setfsuid(2), which `import Glibc` does not show.
@_silgen_name("setfsuid") private func setFileUser(_ user: UInt32) -> CInt

/// Folders that a directory store may not enter.
@Suite(.enabled(if: geteuid() == 0, "needs root")) struct DirectoryLimitsTests {
  private let fixture: DirectoryFixture

  init() throws {
    fixture = try DirectoryFixture()
    try fixture.createBucket("photos")
    try fixture.put("photos", "a", [1])
    try fixture.put("photos", "b/c", [2])
  }

  private func list(_ prefix: ByteString = "", delimited: Bool = true) throws(StoreError)
    -> ListPage
  {
    try fixture.store.list(
      ListRequest(bucket: "photos", prefix: prefix, delimited: delimited), Call())
  }

  @Test func whatIsMountedBeneathIsNotSeen() throws {
    try fixture.createBucket("photos/mounted")
    try fixture.createBucket("other")
    for folder in ["photos/mounted", "other"] {
      let path = fixture.path + "/" + folder
      try #require(mount("none", path, "tmpfs", 0, "size=1m") == 0)
    }
    defer {
      for folder in ["photos/mounted", "other"] {
        #expect(umount2(fixture.path + "/" + folder, CInt(MNT_DETACH)) == 0)
      }
    }
    try fixture.put("photos", "mounted/d", [3])
    try fixture.put("other", "d", [3])
    #expect(try fixture.store.buckets(Call()).map(\.name) == ["photos"])
    #expect(try !fixture.store.bucketExists("other", Call()))
    #expect(try list().folders == ["b/"])
    #expect(try list(delimited: false).objects.map(\.key) == ["a", "b/c"])
    #expect(try list("mounted/").objects.isEmpty)
    let error = #expect(throws: StoreError.self) {
      try fixture.store.info(ObjectName(bucket: "photos", key: "mounted/d"), Call())
    }
    #expect(error?.kind == .notFound)
  }

  @Test func aFolderThatMayNotBeReadIsShownAndRefused() throws {
    try fixture.put("photos", "locked/d", [3])
    try fixture.put("photos", "outer/locked/d", [3])
    for folder in ["", "/photos", "/photos/b", "/photos/outer"] {
      #expect(chmod(fixture.path + folder, 0o755) == 0)
    }
    for folder in ["/photos/locked", "/photos/outer/locked"] {
      #expect(chmod(fixture.path + folder, 0o700) == 0)
    }
    let found = Locked<[Result<ListPage, StoreError>]>([])
    // The identity for files is each thread's own, and ends with it.
    let nobody = try Platform.Thread(name: "nobody") {
      _ = setFileUser(65534)
      for prefix in ["", "outer/", "locked/"] as [ByteString] {
        let page = Result { () throws(StoreError) in try list(prefix) }
        found.withLock { $0.append(page) }
      }
      let flat = Result { () throws(StoreError) in try list(delimited: false) }
      found.withLock { $0.append(flat) }
    }
    nobody.join()
    let pages = found.withLock { $0 }
    try #require(pages.count == 4)
    #expect(try pages[0].get().folders == ["b/", "locked/", "outer/"])
    #expect(try pages[0].get().objects.map(\.key) == ["a"])
    #expect(try pages[1].get().folders == ["outer/locked/"])
    for page in pages[2...] {
      let error = #expect(throws: StoreError.self) { try page.get() }
      #expect(error?.kind == .refused)
    }
  }
}
