import Platform

/// Random numbers that a seed repeats (SplitMix64).
struct SeededRandom: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) {
    state = seed
  }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var value = state
    value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
    value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
    return value ^ (value >> 31)
  }

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
