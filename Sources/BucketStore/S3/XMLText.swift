import Platform

/// Text in XML documents of ours.
enum XMLText {
  static let namespace = "http://s3.amazonaws.com/doc/2006-03-01/"

  /// Whether XML 1.0 has characters for it.
  static func canHold(_ text: ByteString) -> Bool {
    guard let scalars = text.string?.unicodeScalars else { return false }
    return scalars.allSatisfy {
      $0.value >= 32 && $0.value != 0xFFFE && $0.value != 0xFFFF
    }
  }

  static func escaped(_ text: ByteString) -> String {
    text.text.unicodeScalars.map { scalar in
      switch scalar {
      case "&": "&amp;"
      case "<": "&lt;"
      case ">": "&gt;"
      case "\"": "&quot;"
      default: String(scalar)
      }
    }.joined()
  }
}
