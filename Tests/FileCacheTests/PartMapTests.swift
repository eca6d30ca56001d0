import TestSupport
import Testing

@testable import FileCache

@Suite struct PartMapTests {
  @Test func itAgreesWithAPlainSetOfBytes() {
    var random = SeededGenerator(seed: 5)
    for _ in 0..<200 {
      var map = PartMap()
      var bytes = Set<Int64>()
      for _ in 0..<20 {
        let start = Int64.random(in: 0..<60, using: &random)
        let range = start..<(start + Int64.random(in: 0..<12, using: &random))
        map.insert(range)
        bytes.formUnion(range)
        #expect(map.count == Int64(bytes.count))
        for (left, right) in zip(map.ranges, map.ranges.dropFirst()) {
          #expect(left.upperBound < right.lowerBound)
        }
        let from = Int64.random(in: 0..<60, using: &random)
        let asked = from..<(from + Int64.random(in: 0..<20, using: &random))
        #expect(map.contains(asked) == asked.allSatisfy(bytes.contains))
        #expect(map.missing(in: asked).flatMap(Array.init) == asked.filter { !bytes.contains($0) })
      }
      #expect(PartMap(encoded: map.encoded, size: 80) == map)
    }
  }

  @Test func whatIsNoMapIsNotRead() {
    var map = PartMap()
    map.insert(10..<20)
    #expect(PartMap(encoded: map.encoded, size: 19) == nil)
    #expect(PartMap(encoded: Array(map.encoded.dropLast()), size: 20) == nil)
    #expect(PartMap(encoded: Array(map.encoded.reversed()), size: .max) == nil)
    #expect(PartMap(encoded: map.encoded + map.encoded, size: 20) == nil)
  }
}
