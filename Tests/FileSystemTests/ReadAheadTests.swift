import BucketStore
@testable import FileSystem
import Foundation
import Platform
import TestSupport
import Testing

/// Files that are opened one after the other in a folder.
@Suite struct ReadAheadTests {
  let fixture: TreeFixture

  init() throws {
    fixture = try TreeFixture()
    fixture.store.createBucket("b")
    for number in 0..<60 {
      fixture.store.put("b", ByteString(key(number)), bytes(number))
    }
    for number in 0..<60 {
      fixture.store.put("b", ByteString("n/\(number).jpg"), bytes(number))
    }
    _ = try fixture.names("b/f")
  }

  private func key(_ number: Int) -> String {
    "f/\(number / 10)\(number % 10).jpg"
  }

  private func bytes(_ number: Int) -> [UInt8] { Array("picture \(number)".utf8) }

  /// How often the bytes of each object were asked for.
  private var gets: [ByteString: Int] {
    fixture.store.requests.reduce(into: [:]) { counts, request in
      if request.route == .get { counts[request.key, default: 0] += 1 }
    }
  }

  private func eventually(_ condition: () -> Bool) -> Bool {
    for _ in 0..<1000 where !condition() { usleep(10_000) }
    return condition()
  }

  private func isKept(_ number: Int) -> Bool {
    fixture.cache.copy(of: ObjectName(bucket: "b", key: ByteString(key(number)))) != nil
  }

  @Test func theNextOnesAreFetchedBeforeTheyAreOpened() throws {
    for number in 0..<6 {
      #expect(try fixture.contents("b/" + ByteString(key(number))) == bytes(number))
    }
    #expect(eventually { (6..<20).allSatisfy(isKept) })
    #expect(!isKept(40))
  }

  @Test func eachObjectIsAskedForOnce() throws {
    for number in 0..<60 {
      #expect(try fixture.contents("b/" + ByteString(key(number))) == bytes(number))
    }
    #expect(gets.count == 60)
    #expect(gets.values.allSatisfy { $0 == 1 }, "\(gets)")
  }

  @Test func theOrderOfInodesIsAnOrderToo() throws {
    let inodes = try (0..<60).map { number in
      (number, try fixture.inode("b/" + ByteString(key(number))))
    }
    let order = inodes.sorted { $0.1 < $1.1 }.map(\.0)
    for number in order.prefix(6) { _ = try fixture.contents("b/" + ByteString(key(number))) }
    #expect(eventually { order[6..<14].allSatisfy(isKept) })
  }

  @Test func numbersAreAnOrderToo() throws {
    _ = try fixture.names("b/n")
    for number in 0..<7 {
      #expect(try fixture.contents(ByteString("b/n/\(number).jpg")) == bytes(number))
    }
    #expect(
      eventually {
        (7..<20).allSatisfy {
          fixture.cache.copy(of: ObjectName(bucket: "b", key: ByteString("n/\($0).jpg"))) != nil
        }
      })
  }

  @Test func filesInNoOrderAreFetchedAlone() throws {
    let order = [50, 3, 31, 12, 44, 20, 58, 8, 37, 26]
    for number in order { _ = try fixture.contents("b/" + ByteString(key(number))) }
    // What an open starts is on its way when it returns.
    #expect(eventually { fixture.tree.readAhead.isIdle })
    #expect(gets.count == 10)
  }

  @Test func whatCannotBeFetchedAheadIsLeftToTheOneWhoOpensIt() throws {
    for number in 0..<3 { _ = try fixture.contents("b/" + ByteString(key(number))) }
    #expect(eventually { isKept(3) && isKept(4) })
    fixture.store.fail(.get, with: StoreError(.throttled, "slow down"))
    for number in 3..<5 { _ = try fixture.contents("b/" + ByteString(key(number))) }
    #expect(throws: Failure.self) { try fixture.contents("b/" + ByteString(key(30))) }
    fixture.store.fail(.get, with: nil)
    #expect(
      eventually {
        do { return try fixture.contents("b/" + ByteString(key(9))) == bytes(9) } catch {
          return false
        }
      })
  }

  @Test func indexersGetWhatTheyOpenAndNoMore() throws {
    let program = fixture.scratch.path("tracker-extract-3")
    try FileManager.default.copyItem(atPath: "/bin/sleep", toPath: program)
    let indexer = Process()
    indexer.executableURL = URL(fileURLWithPath: program)
    indexer.arguments = ["60"]
    try indexer.run()
    defer { indexer.terminate() }
    let caller = Caller(processID: indexer.processIdentifier, lane: .slow, call: Call())
    #expect(eventually { Indexer.isOne(caller.processID) })
    for number in 0..<10 {
      let inode = try fixture.inode("b/" + ByteString(key(number)))
      let handle = try fixture.tree.open(inode, flags: O_RDONLY, caller)
      #expect(try fixture.read(handle) == bytes(number))
      handle.close()
    }
    // What an open starts is on its way when it returns.
    #expect(eventually { fixture.tree.readAhead.isIdle })
    #expect(gets.count == 10)
  }
}
