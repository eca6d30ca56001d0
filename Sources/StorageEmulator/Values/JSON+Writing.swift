import Glibc

extension JSON {
  /// The compact text, UTF-8.
  package var encoded: [UInt8] {
    var result: [UInt8] = []
    write(to: &result)
    return result
  }

  /// The compact text.
  package var encodedText: String { String(decoding: encoded, as: UTF8.self) }

  func write(to output: inout [UInt8]) {
    switch self {
    case .null: output.append(contentsOf: "null".utf8)
    case .bool(let value): output.append(contentsOf: (value ? "true" : "false").utf8)
    case .integer(let value): output.append(contentsOf: String(value).utf8)
    case .number(let value):
      output.append(contentsOf: (value.isFinite ? String(value) : "null").utf8)
    case .string(let value): Self.write(value, to: &output)
    case .array(let items):
      output.append(UInt8(ascii: "["))
      for (index, item) in items.enumerated() {
        if index > 0 { output.append(UInt8(ascii: ",")) }
        item.write(to: &output)
      }
      output.append(UInt8(ascii: "]"))
    case .object(let members):
      output.append(UInt8(ascii: "{"))
      for (index, member) in members.enumerated() {
        if index > 0 { output.append(UInt8(ascii: ",")) }
        Self.write(member.name, to: &output)
        output.append(UInt8(ascii: ":"))
        member.value.write(to: &output)
      }
      output.append(UInt8(ascii: "}"))
    }
  }

  private static func write(_ text: String, to output: inout [UInt8]) {
    output.append(UInt8(ascii: "\""))
    // The C library looks: pages of a thousand entries are written in debug builds too.
    let clean = text.withCString { start in
      escaped.withUnsafeBufferPointer { reject in
        reject.baseAddress.map { strcspn(start, $0) } ?? 0
      }
    }
    var text = text
    text.withUTF8 { utf8 in
      if clean == utf8.count {
        output.append(contentsOf: utf8)
      } else {
        for byte in utf8 { escape(byte, to: &output) }
      }
    }
    output.append(UInt8(ascii: "\""))
  }

  /// The characters that must be escaped, as a C string: below space, `"` and `\`.
  private static let escaped: [CChar] = Array(1..<32) + [34, 92, 0]

  private static func escape(_ byte: UInt8, to output: inout [UInt8]) {
    switch byte {
    case UInt8(ascii: "\""): output.append(contentsOf: "\\\"".utf8)
    case UInt8(ascii: "\\"): output.append(contentsOf: "\\\\".utf8)
    case UInt8(ascii: "\n"): output.append(contentsOf: "\\n".utf8)
    case UInt8(ascii: "\r"): output.append(contentsOf: "\\r".utf8)
    case UInt8(ascii: "\t"): output.append(contentsOf: "\\t".utf8)
    case 0..<32:
      let hex = String(byte, radix: 16)
      output.append(contentsOf: ("\\u00" + (byte < 16 ? "0" : "") + hex).utf8)
    default: output.append(byte)
    }
  }
}
