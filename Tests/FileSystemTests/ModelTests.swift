import BucketStore
import FileSystem
import Glibc
import Platform
import TestSupport
import Testing

/// Random changes in the store and random operations on the tree, beside a simple model of both.
///
/// The model is a dictionary of the store's objects. With the network on, the tree must show what
/// the dictionary holds; with it off, what was shown last must be shown again, and a file that was
/// read since its last change in the store must be read again.
@Suite struct ModelTests {
  private struct Model {
    var objects: [ByteString: [UInt8]] = [:]
    /// What folders showed when they were last read.
    var shown: [ByteString: [ByteString]] = [:]
    /// What files held when they were last read to the end.
    var read: [ByteString: [UInt8]] = [:]

    /// The names in a folder; nil when there is no such folder.
    func names(_ folder: ByteString) -> [ByteString]? {
      let prefix = folder.isEmpty ? folder : folder + "/"
      let below = objects.keys.filter { $0.hasPrefix(prefix) }
      if below.isEmpty, !folder.isEmpty { return nil }
      let names = below.map { key -> ByteString in
        let rest = key.dropFirst(prefix.count)
        return rest.split(at: ByteString.slash).first ?? rest
      }
      return Set(names).sorted()
    }

    func isFolder(_ path: ByteString) -> Bool { objects.keys.contains { $0.hasPrefix(path + "/") } }
  }

  @Test(arguments: 1...6) func theTreeShowsWhatTheModelHolds(_ seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let fixture = try TreeFixture(maxAge: .zero)
    fixture.store.createBucket("b")
    fixture.store.capabilities.pageSize = Int.random(in: 2...9, using: &random)
    fixture.store.capabilities.flatListing = Bool.random(using: &random)
    var model = Model()
    var history: [String] = []
    for step in 0..<120 {
      let action = Int.random(in: 0..<12, using: &random)
      let path = Self.path(&random)
      do {
        switch action {
        case 0...2:
          let bytes = random.bytes(Int.random(in: 0...40, using: &random))
          guard fixture.store.outage == nil else { continue }
          history.append("put \(path)")
          fixture.store.put("b", path, bytes)
          model.objects[path] = bytes
          model.read[path] = nil
        case 3:
          guard fixture.store.outage == nil else { continue }
          history.append("remove \(path)")
          fixture.store.remove("b", path)
          model.objects[path] = nil
          model.read[path] = nil
        case 4:
          let isOff = Bool.random(using: &random) && Bool.random(using: &random)
          history.append(isOff ? "offline" : "online")
          fixture.store.outage = isOff ? StoreError(.offline, "offline") : nil
        case 5:
          history.append("remount")
          try fixture.remount()
        case 6...8:
          let folder = Bool.random(using: &random) ? ByteString() : path
          history.append("list \(folder)")
          try list(folder, fixture, &model)
        default:
          history.append("read \(path)")
          try read(path, fixture, &model)
        }
      } catch {
        Issue.record("seed \(seed), step \(step): \(error)\n\(history.joined(separator: "\n"))")
        return
      }
    }
    #expect(history.count > 60)
  }

  private struct Difference: Error, CustomStringConvertible {
    let description: String
  }

  private func list(_ folder: ByteString, _ fixture: TreeFixture, _ model: inout Model) throws {
    let path: ByteString = folder.isEmpty ? "b" : "b/" + folder
    settle(fixture)
    var names: [ByteString]?
    do {
      if try fixture.find(path)?.attributes.isDirectory == true { names = try fixture.names(path) }
    } catch let failure as Failure where failure.errno == .notDirectory {
      names = nil
    } catch let failure as Failure {
      guard fixture.store.outage != nil, model.shown[folder] == nil else { throw failure }
      return
    }
    if fixture.store.outage == nil {
      let expected = model.names(folder)
      guard names == expected else {
        throw Difference(description: "shown \(names ?? []), held \(expected ?? [])")
      }
      model.shown[folder] = names
    }
  }

  private func read(_ path: ByteString, _ fixture: TreeFixture, _ model: inout Model) throws {
    settle(fixture)
    let isOnline = fixture.store.outage == nil
    var bytes: [UInt8]?
    do {
      guard let entry = try fixture.find("b/" + path) else {
        return try expect(nil, path, model, isOnline)
      }
      if entry.attributes.isDirectory {
        guard !isOnline || model.isFolder(path) else {
          throw Difference(description: "\(path) is shown as a folder")
        }
        return
      }
      bytes = try fixture.contents("b/" + path)
      if isOnline, let size = bytes?.count, Int64(size) != entry.attributes.size {
        throw Difference(description: "\(path) is \(size) long, not \(entry.attributes.size)")
      }
    } catch let failure as Failure where failure.errno == .notDirectory {
      bytes = nil
    } catch let failure as Failure {
      guard !isOnline else { throw failure }
      guard model.read[path] == nil else {
        throw Difference(description: "\(path) was read before, and now: \(failure)")
      }
      return
    }
    try expect(bytes, path, model, isOnline)
    if isOnline { model.read[path] = bytes }
  }

  private func expect(
    _ bytes: [UInt8]?, _ path: ByteString, _ model: Model, _ isOnline: Bool
  ) throws {
    if isOnline, !model.isFolder(path), bytes != model.objects[path] {
      throw Difference(description: "\(path) holds other bytes")
    }
    if !isOnline, let known = model.read[path], let bytes, bytes != known {
      throw Difference(description: "\(path) holds other bytes than when it was read")
    }
  }

  /// Lets what is believed for its cost alone grow old, so that the store is asked.
  private func settle(_ fixture: TreeFixture) {
    guard fixture.store.outage == nil else { return }
    fixture.tree.listings.distrust()
  }

  private static func path(_ random: inout SeededGenerator) -> ByteString {
    let names: [ByteString] = ["a", "a.b", "b", "B", "é", "e\u{301}", "x y", "%41"]
    let depth = Int.random(in: 1...3, using: &random)
    let parts = (0..<depth).map { _ in names.randomElement(using: &random)?.bytes ?? [] }
    return ByteString(parts.joined(separator: [ByteString.slash]))
  }
}
