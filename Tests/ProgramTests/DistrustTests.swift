import BucketStore
import FileCache
import Platform
import TestSupport
import Testing

@testable import bucketfs

/// When a mount asks anew, although what it keeps is fresh.
struct DistrustTests {
  private let scratch: Scratch
  private let service: Service
  private let folder = FolderName(bucket: "photos")

  init() throws {
    scratch = try Scratch()
    try scratch.file("store/photos/a", [1])
    let plan = try MountPlan(
      source: "dir:\(scratch.path("store"))",
      lists: ["max_age=1h,cache_dir=\(scratch.path("cache"))"], environment: .init())
    service = try Service(plan, at: scratch.path("mnt"), log: nil)
    _ = try service.fileSystem.listings.asked(folder, Call())
    try scratch.file("store/photos/b", [2])
  }

  private var count: Int {
    get throws(StoreError) {
      try service.fileSystem.listings.asked(folder, Call()).listing.count
    }
  }

  @Test func theVerbOnlineShowsWhatIsNew() throws {
    defer { service.fileSystem.close() }
    #expect(try count == 1)
    guard case .status = service.answer(ControlRequest(.online), Cancellation()) else {
      Issue.record("no status")
      return
    }
    #expect(try count == 2)
  }

  @Test func aNetworkThatComesBackShowsWhatIsNew() throws {
    defer { service.fileSystem.close() }
    service.parts.network.disable()
    #expect(try count == 1)
    service.parts.network.enable()
    #expect(try count == 2)
  }
}
