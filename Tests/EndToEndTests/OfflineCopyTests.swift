import Foundation
import Glibc
import Platform
import StorageEmulator
import TestSupport
import Testing

/// A camera's card copied in without a network, a program that is killed, and a store that comes
/// back.
@Suite(.serialized) struct OfflineCopyTests {
  private static let count = 500

  /// A folder of photographs on the machine's own disk, with times of their own.
  private func makeCard(_ project: Project) throws -> [String: [UInt8]] {
    var random = SeededGenerator(seed: 2026)
    var photos: [String: [UInt8]] = [:]
    for index in 0..<Self.count {
      let name = "card/DCIM \(index % 5)/IMG_\(1000 + index).jpg"
      let bytes = random.bytes(Int.random(in: 1...20_000, using: &random))
      let path = try project.machine.scratch.file(name, bytes)
      var times = [timespec(), timespec()]
      for place in 0..<2 {
        times[place] = timespec(tv_sec: 1_600_000_000 + index * 61, tv_nsec: index * 1_000_003)
      }
      #expect(utimensat(AT_FDCWD, path, times, 0) == 0)
      photos[String(name)] = bytes
    }
    return photos
  }

  /// Looks again and again at a folder, until told to stop: what was there each time.
  private final class Watcher: Sendable {
    private let state = Locked((isStopping: false, looks: 0, faults: [String]()))
    private let thread = Locked<Platform.Thread?>(nil)

    init(_ folders: [String: [String]]) throws {
      let started = try Platform.Thread(name: "watcher") { [state] in
        while !state.withLock({ $0.isStopping }) {
          for (folder, expected) in folders {
            let names = Self.names(folder)
            guard names != expected else { continue }
            let missing = Set(expected).subtracting(names ?? [])
            let found = "\(folder): \(names?.count ?? -1) names, not \(expected.count): \(missing)"
            state.withLock { $0.faults.append(found) }
          }
          state.withLock { $0.looks += 1 }
        }
      }
      thread.withLock { $0 = started }
    }

    /// Every name that readdir(3) gives, in order, each as often as it gives it.
    private static func names(_ folder: String) -> [String]? {
      guard let stream = opendir(folder) else { return nil }
      defer { closedir(stream) }
      var names: [String] = []
      while let entry = readdir(stream) {
        let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
          pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        if name != ".", name != ".." { names.append(name) }
      }
      return names.sorted()
    }

    /// - Returns: how often it looked, and what it found wrong.
    func stop() -> (looks: Int, faults: [String]) {
      state.withLock { $0.isStopping = true }
      thread.withLock { $0 }?.join()
      return state.withLock { ($0.looks, $0.faults) }
    }
  }

  private func isMark(_ key: String?) -> Bool {
    key?.hasSuffix("/.emptyFolderPlaceholder") ?? false
  }

  @Test(.timeLimit(.minutes(10)))
  func whatIsCopiedInWithoutANetworkIsThereAfterAKillAndReachesTheStoreOnce() throws {
    let project = try Project()
    let machine = project.machine
    project.emulator.createBucket("album")
    let photos = try makeCard(project)
    try project.mount("max_age=1,bucket=album")
    project.emulator.stop()

    let copy = try machine.shell(#"cp -r --preserve=timestamps card "$M/""#, timeout: 120)
    #expect(copy.code == 0, "\(copy.error)")
    #expect(copy.seconds < 60)
    let seen = try machine.shell(#"find "$M/card" -type f | wc -l"#)
    #expect(seen.output == "\(Self.count)\n")
    #expect(try machine.shell(#"diff -r card "$M/card""#).code == 0)

    try machine.killMount()
    try project.mount("max_age=1,bucket=album")
    let same = try machine.shell(#"diff -r card "$M/card""#)
    #expect(same.code == 0, "\(same.output)")
    // Folders that were made are marked at the store; the marks are of no account here.
    let records = try project.queue().filter { !isMark($0["object_path"] as? String) }
    #expect(records.count == Self.count)
    #expect(records.allSatisfy { $0["state"] as? String == "waiting" })
    let times = #"-type f -printf '%T@ %P\n' | sort -k2"#
    let expectedTimes = try machine.shell("find card \(times)").output
    #expect(try machine.shell(#"find "$M/card" \#(times)"#).output == expectedTimes)

    var folders: [String: [String]] = [:]
    for folder in 0..<5 {
      folders[project.path("card/DCIM \(folder)")] =
        (0..<Self.count).filter { $0 % 5 == folder }.map { "IMG_\(1000 + $0).jpg" }.sorted()
    }
    let watcher = try Watcher(folders)
    project.emulator.requests.clear()
    try project.emulator.start(port: project.port)
    #expect(try machine.bucketfs("online", machine.mountpoint).code == 0)
    let wait = try project.wait(240)
    #expect(wait.code == 0, "\(wait.error)")
    // A moment longer, when the listings are fetched anew.
    usleep(2_500_000)
    let (looks, faults) = watcher.stop()
    #expect(looks > 10)
    #expect(faults.isEmpty, "\(faults.prefix(3))")

    for (name, bytes) in photos { #expect(try project.stored(name) == bytes, "\(name)") }
    let keys = project.emulator.keys("album").filter { !isMark($0.description) }
    #expect(keys.count == Self.count)
    let uploads = project.emulator.requests.entries().filter { entry in
      entry.route == "upload" && !isMark(entry.key?.description)
    }
    #expect(uploads.count == Self.count, "each was sent once")
    let order = Dictionary(
      uniqueKeysWithValues: records.enumerated().map { ($1["object_path"] as? String ?? "", $0) })
    // Those that were being tried when the store was found again go behind the others once.
    let overtaken = uploads.enumerated().count { place, entry in
      abs((order[entry.key?.description ?? ""] ?? .max) - place) >= 16
    }
    #expect(overtaken <= 8, "oldest first")
    for name in photos.keys.sorted().prefix(20) {
      let facts = try #require(project.emulator.object("album", ByteString(name)))
      var status = stat()
      #expect(stat(machine.scratch.path(name), &status) == 0)
      let metadata = "\(try #require(facts.userMetadata))"
      #expect(metadata.contains("\(status.st_mtim.tv_sec)."), "\(metadata)")
      #expect(facts.contentType == "image/jpeg")
    }
    // What was here stays here: nothing is fetched, and nothing changes its time.
    #expect(try machine.shell(#"diff -r card "$M/card""#).code == 0)
    let later = try machine.shell(#"find "$M/card" \#(times)"#).output
    let changed = Set(later.split(separator: "\n")).subtracting(
      expectedTimes.split(separator: "\n"))
    #expect(later == expectedTimes, "\(changed.count) times changed: \(changed.sorted().prefix(5))")
    let fetched = project.emulator.requests.entries().filter { entry in
      entry.route == "object" && entry.status == 200
    }
    #expect(fetched.isEmpty)
    try machine.unmount()

    // Another machine sees the same bytes.
    let other = try Machine(environment: ["SUPABASE_KEY": project.emulator.serviceKey])
    try other.mount(project.source, "max_age=1,bucket=album")
    let there = try other.run(
      "diff", "-r", machine.scratch.path("card"), other.mountpoint + "/card")
    #expect(there.code == 0, "\(there.output)")
    try other.unmount()
  }

  @Test(.timeLimit(.minutes(2)))
  func aMountThatHasJustComeUpTakesFilesWithoutANetwork() throws {
    let project = try Project()
    project.emulator.createBucket("album")
    try project.emulator.put("album", "seen.txt", [1])
    try project.mount()
    project.emulator.stop()
    let copied = try project.machine.shell(
      #"printf new > "$M/album/new.txt" && mkdir "$M/album/dir" && ls "$M/album""#)
    #expect(copied.code == 0, "\(copied.error)")
    #expect(copied.output == "dir\nnew.txt\nseen.txt\n")
    try project.emulator.start(port: project.port)
    #expect(try project.machine.bucketfs("online", project.machine.mountpoint).code == 0)
    #expect(try project.wait().code == 0)
    #expect(try project.stored("new.txt") == Array("new".utf8))
    try project.machine.unmount()
  }
}
