import BucketStore
package import Platform

/// What a person has set of a file or folder, and no store keeps: times, mode, extended attributes.
package struct KeptAttributes: Sendable, Equatable {
  /// The version of the object that they were set of; nil where none is known, and for folders.
  package var tag: String?
  /// That version's size in bytes; nil for folders.
  package var size: Int64?
  /// The modification time; nil where none was set.
  package var modified: Timestamp?
  /// Permission bits.
  package var mode: UInt32?
  /// Extended attributes by name.
  package var extended: [ByteString: [UInt8]]

  package init(
    tag: String? = nil, size: Int64? = nil, modified: Timestamp? = nil, mode: UInt32? = nil,
    extended: [ByteString: [UInt8]] = [:]
  ) {
    self.tag = tag
    self.size = size
    self.modified = modified
    self.mode = mode
    self.extended = extended
  }

  /// Whether nothing is set.
  package var isEmpty: Bool { modified == nil && mode == nil && extended.isEmpty }

  /// Whether they are said of a version of an object.
  package func belong(to tag: String?, size: Int64?) -> Bool {
    if let mine = self.size, let size, mine != size { return false }
    if let mine = self.tag, let tag { return EntityTag.areSame(mine, tag) }
    return true
  }

  /// The extended attributes as the index holds them.
  var encoded: [UInt8] {
    extended.sorted { $0.key < $1.key }.flatMap { name, value in
      Self.field(name.bytes) + Self.field(value)
    }
  }

  private static func field(_ bytes: [UInt8]) -> [UInt8] {
    let count = UInt32(truncatingIfNeeded: bytes.count)
    return (0..<4).map { UInt8(truncatingIfNeeded: count >> (8 * $0)) } + bytes
  }

  /// Reads what `encoded` has made; what is not of that form ends the list.
  static func decode(_ bytes: [UInt8]) -> [ByteString: [UInt8]] {
    var rest = bytes[...]
    func next() -> [UInt8]? {
      guard rest.count >= 4 else { return nil }
      let count = rest.prefix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
      guard rest.count - 4 >= count else { return nil }
      defer { rest = rest.dropFirst(4 + count) }
      return Array(rest.dropFirst(4).prefix(count))
    }
    var result: [ByteString: [UInt8]] = [:]
    while let name = next(), let value = next() { result[ByteString(name)] = value }
    return result
  }
}
