import BucketStore
import Glibc
import Platform
import TestSupport
import Testing

/// What holds for a plain directory beyond the contract.
@Suite struct DirectoryStoreTests {
  @Test func symlinksAreNoObjectsAndAreNotFollowed() throws {
    let fixture = try DirectoryFixture()
    try fixture.createBucket("photos")
    try fixture.put("photos", "real", [1])
    #expect(symlink("real", fixture.path + "/photos/link") == 0)
    #expect(symlink("/etc", fixture.path + "/photos/etc") == 0)
    #expect(symlink("photos", fixture.path + "/alias") == 0)
    let page = try fixture.store.list(
      ListRequest(bucket: "photos", prefix: "", delimited: true), Call())
    #expect(page.objects.map(\.key) == ["real"])
    #expect(page.folders.isEmpty)
    #expect(try fixture.store.buckets(Call()).map(\.name) == ["photos"])
    for key in ["link", "etc/passwd"] as [ByteString] {
      #expect(throws: StoreError.self) {
        try fixture.store.info(ObjectName(bucket: "photos", key: key), Call())
      }
    }
    #expect(try !fixture.store.bucketExists("alias", Call()))
  }

  @Test func whatIsWrittenMayBeSeenByWhomTheMaskLets() throws {
    let fixture = try DirectoryFixture()
    try fixture.createBucket("photos")
    // Setting it in order to read it would touch the tests beside this one (proc_pid_status(5)).
    let status = String(
      decoding: try File("/proc/self/status", O_RDONLY).readToEnd(), as: UTF8.self)
    let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("Umask:") })
    let mask = try #require(mode_t(line.dropFirst(6).drop { $0 == "\t" }, radix: 8))
    let request = PutRequest(
      object: ObjectName(bucket: "photos", key: "a/b/c"), size: 1, contentType: "text/plain",
      userMetadata: [:], condition: .none)
    try DirectoryStore(fixture.path).put(
      request, from: BytesSource([1]), progress: { _ in }, Call())
    for (path, bits) in [("a", mode_t(0o777)), ("a/b", 0o777), ("a/b/c", 0o666)] {
      var facts = stat()
      #expect(stat(fixture.path + "/photos/" + path, &facts) == 0)
      #expect(facts.st_mode & 0o777 == bits & ~mask)
    }
  }

  @Test func anEmptyDirectoryHasNoKeySoItIsNotListed() throws {
    let fixture = try DirectoryFixture()
    try fixture.createBucket("photos/empty/deeper")
    try fixture.put("photos", "full/deeper/x", [1])
    let page = try fixture.store.list(
      ListRequest(bucket: "photos", prefix: "", delimited: true), Call())
    #expect(page.folders == ["full/"])
  }

  @Test func aRewriteOfTheSameLengthGivesAnotherTag() throws {
    let fixture = try DirectoryFixture()
    try fixture.createBucket("photos")
    try fixture.put("photos", "a", [1, 2, 3])
    let object = ObjectName(bucket: "photos", key: "a")
    let before = try fixture.store.info(object, Call()).tag
    try fixture.put("photos", "a", [4, 5, 6])
    #expect(try fixture.store.info(object, Call()).tag != before)
  }

  @Test func aCancelledListingThrows() throws {
    let fixture = try DirectoryFixture()
    try fixture.createBucket("photos")
    try fixture.put("photos", "a", [1])
    let call = Call()
    call.cancellation.cancel()
    #expect(throws: StoreError.self) {
      try fixture.store.list(ListRequest(bucket: "photos", prefix: "", delimited: true), call)
    }
  }
}
