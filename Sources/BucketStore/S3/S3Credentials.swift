/// What signs requests. It shows nothing of its secrets when it is printed.
package struct S3Credentials: Sendable, Equatable, CustomStringConvertible, CustomReflectable {
  /// Names the credentials; sent with every request.
  package let accessKey: String
  /// Signs; never sent.
  package let secretKey: String
  /// Of temporary credentials alone.
  package let sessionToken: String?

  package init(accessKey: String, secretKey: String, sessionToken: String? = nil) {
    self.accessKey = accessKey
    self.secretKey = secretKey
    self.sessionToken = sessionToken
  }

  /// Whose they are, as far as they tell; what waits for the store is sent with nobody else's.
  ///
  /// The access key, which is permanent. Temporary ones are others every few hours: those of AWS
  /// (`ASIA`) have the number of the account in the 2nd to the 41st bit of the base32 text after those
  /// four letters, as has been observed of them.
  package var owner: String {
    let digits = accessKey.utf8.dropFirst(4)
    guard sessionToken != nil, accessKey.hasPrefix("ASIA"), digits.count == 16 else {
      return accessKey
    }
    var bits: UInt64 = 0
    for digit in digits.prefix(10) {
      switch digit {
      case UInt8(ascii: "A")...UInt8(ascii: "Z"): bits = bits << 5 | UInt64(digit - 65)
      case UInt8(ascii: "2")...UInt8(ascii: "7"): bits = bits << 5 | UInt64(digit - 50 + 26)
      default: return accessKey
      }
    }
    return "account " + String(bits >> 9 & (1 << 40 - 1))
  }

  package var description: String { "(credentials of \(accessKey))" }
  /// Keeps the secrets out of dumps.
  package var customMirror: Mirror { Mirror(self, children: ["accessKey": accessKey]) }
}
