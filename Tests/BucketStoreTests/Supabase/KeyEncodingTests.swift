import BucketStore
import Platform
import TestSupport
import Testing

@Suite struct KeyEncodingTests {
  @Test(arguments: [
    ("photo.jpg", "photo.jpg"),
    ("ü", "=C3=BC"),
    ("100%.txt", "100=25.txt"),
    ("a=b", "a=b"),
    ("E=mc2", "E=mc2"),
    ("=3D", "=3D"),
    ("=C3", "=3DC3"),
    ("=3DC3", "=3D3DC3"),
    ("=c3", "=c3"),
    ("==C3", "==3DC3"),
    ("=ü", "==C3=BC"),
    ("=3Dü", "=3D=C3=BC"),
    ("=2F", "=2F"),
    ("=2E=2E", "=2E=2E"),
    ("d/~x#", "d/=7Ex=23"),
    ("\u{0}\n", "=00=0A"),
    ("", ""),
  ])
  func aNameHasItsKey(name: ByteString, key: ByteString) {
    #expect(KeyEncoding.encode.encode(name) == key)
    #expect(KeyEncoding.encode.decode(key) == name)
  }

  @Test func everyNameComesBackFromAKeyThatTheStoreTakes() throws {
    var random = SeededGenerator(seed: 41)
    for _ in 0..<20_000 {
      let name = random.awkwardBytes()
      let key = try #require(KeyEncoding.encode.encode(name))
      #expect(key.bytes.allSatisfy(KeyEncoding.isTaken), "\(name)")
      #expect(KeyEncoding.encode.decode(key) == name, "\(name) \(key)")
    }
  }

  @Test func everyKeyThatTheStoreTakesComesBackFromItsName() {
    var random = SeededGenerator(seed: 42)
    for _ in 0..<20_000 {
      let key = ByteString(random.awkwardBytes().bytes.filter(KeyEncoding.isTaken))
      #expect(KeyEncoding.encode.encode(KeyEncoding.encode.decode(key)) == key, "\(key)")
    }
  }

  @Test func everyShortStringOfTheSignificantBytesIsMatchedOneToOne() throws {
    let alphabet = Array("=3DC%/".utf8)
    var names: [[UInt8]] = [[]]
    var all: [[UInt8]] = [[]]
    for _ in 0..<6 {
      names = names.flatMap { name in alphabet.map { name + [$0] } }
      all += names
    }
    var keys: [ByteString: ByteString] = [:]
    for name in all.map({ ByteString($0) }) {
      let key = try #require(KeyEncoding.encode.encode(name))
      #expect(KeyEncoding.encode.decode(key) == name)
      #expect(keys.updateValue(name, forKey: key) == nil, "\(key) twice")
    }
    #expect(keys.count == 55_987)
  }

  @Test func aPathMayBeEncodedWholeOrInSegments() throws {
    var random = SeededGenerator(seed: 43)
    for _ in 0..<2_000 {
      let path = random.awkwardBytes()
      let segments = path.split(at: ByteString.slash).compactMap { KeyEncoding.encode.encode($0) }
      let joined = ByteString(segments.map(\.bytes).joined(separator: [ByteString.slash]))
      #expect(try #require(KeyEncoding.encode.encode(path)) == joined)
    }
  }

  @Test func strictNamesAreKeysOrHaveNone() {
    #expect(KeyEncoding.strict.encode("a=C3 (1).txt") == "a=C3 (1).txt")
    #expect(KeyEncoding.strict.encode("ü") == nil)
    #expect(KeyEncoding.strict.decode("=C3=BC") == "=C3=BC")
  }
}
