import CCrypto

/// A message digest of OpenSSL (EVP_DigestInit_ex(3)), fed in pieces.
package struct Digest: ~Copyable {
  /// Which digest to compute.
  package enum Algorithm: Sendable {
    case md5
    case sha256
  }

  private let context: OpaquePointer

  /// Stops the program where libcrypto has no memory or no such digest.
  package init(_ algorithm: Algorithm) {
    guard let context = EVP_MD_CTX_new() else { preconditionFailure("out of memory") }
    self.context = context
    let ready =
      switch algorithm {
      case .md5: EVP_DigestInit_ex(context, EVP_md5(), nil)
      case .sha256: EVP_DigestInit_ex(context, EVP_sha256(), nil)
      }
    precondition(ready == 1, "libcrypto has no such digest")
  }

  deinit {
    EVP_MD_CTX_free(context)
  }

  /// Takes the next piece.
  package mutating func update(_ bytes: UnsafeRawBufferPointer) {
    _ = EVP_DigestUpdate(context, bytes.baseAddress, bytes.count)
  }

  /// The digest of all that was fed, in lower-case hexadecimal.
  package consuming func finish() -> String { Self.hex(bytes()) }

  /// The digest of all that was fed.
  package consuming func bytes() -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
    var length: UInt32 = 0
    _ = EVP_DigestFinal_ex(context, &digest, &length)
    return Array(digest.prefix(Int(length)))
  }

  /// The digest of one piece, in lower-case hexadecimal.
  package static func hex(_ algorithm: Algorithm, of bytes: [UInt8]) -> String {
    var digest = Digest(algorithm)
    bytes.withUnsafeBytes { digest.update($0) }
    return digest.finish()
  }

  /// The keyed digest of one piece (HMAC of RFC 2104) with SHA-256.
  package static func keyed(_ bytes: [UInt8], with key: [UInt8]) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
    var length: UInt32 = 0
    let done = HMAC(
      EVP_sha256(), key, CInt(clamping: key.count), bytes, bytes.count, &digest, &length)
    precondition(done != nil, "libcrypto has no such digest")
    return Array(digest.prefix(Int(length)))
  }

  /// Bytes in lower-case hexadecimal.
  package static func hex(_ bytes: [UInt8]) -> String {
    bytes.map { byte in
      let hex = String(byte, radix: 16)
      return byte < 16 ? "0" + hex : hex
    }.joined()
  }
}
