import Platform
import TestSupport

extension SeededGenerator {
  /// Bytes of which half are those that encodings stumble over.
  mutating func awkwardBytes(upTo limit: Int = 24) -> ByteString {
    let awkward = Array("==33DDC3B7Fabz09/ .%#~+".utf8)
    return ByteString(
      (0..<Int.random(in: 0...limit, using: &self)).map { _ in
        Bool.random(using: &self)
          ? awkward[Int.random(in: 0..<awkward.count, using: &self)]
          : UInt8.random(in: 0...255, using: &self)
      })
  }
}
