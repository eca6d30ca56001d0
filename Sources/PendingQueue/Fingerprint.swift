/// What tells one content from another: its size and its SHA-256, in lower-case hexadecimal.
package struct Fingerprint: Hashable, Sendable {
  package var size: Int64
  package var sha256: String

  package init(size: Int64, sha256: String) {
    self.size = size
    self.sha256 = sha256
  }
}
