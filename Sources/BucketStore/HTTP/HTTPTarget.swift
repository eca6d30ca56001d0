/// The address of a request, taken apart far enough to judge whether it may be sent.
///
/// Stricter than libcurl's parser on purpose: what both would read in two ways is refused here, so
/// the host that is judged is the host that is asked. Follows RFC 3986, section 3.
struct HTTPTarget {
  let isEncrypted: Bool
  /// The host in lower case, an IPv6 address without its brackets.
  let host: String

  /// - Throws: `StoreError` of kind `refused`.
  init(_ url: String) throws(StoreError) {
    guard url.utf8.allSatisfy({ $0 > 32 && $0 < 127 && !Self.forbidden.contains($0) }) else {
      throw StoreError(.refused, "a URL holds a character that must be encoded")
    }
    let rest: Substring
    if url.hasPrefix("https://") {
      isEncrypted = true
      rest = url.dropFirst(8)
    } else if url.hasPrefix("http://") {
      isEncrypted = false
      rest = url.dropFirst(7)
    } else {
      throw StoreError(.refused, "a URL must begin with https:// or http://")
    }
    let authority = rest.prefix { $0 != "/" && $0 != "?" }
    guard let host = Self.host(of: authority) else {
      throw StoreError(.refused, "a URL names no host that can be asked")
    }
    self.host = host
  }

  /// Whether the host is this machine by its very name: nothing looked up can lead elsewhere.
  ///
  /// `localhost` counts, since libcurl never looks it up.
  var isLoopback: Bool {
    if host == "localhost" || host == "::1" { return true }
    let parts = host.split(separator: ".", omittingEmptySubsequences: false)
    return parts.count == 4 && parts[0] == "127"
      && parts.allSatisfy { part in
        guard let number = UInt8(part) else { return false }
        return String(number) == part
      }
  }

  private static let forbidden = Array("#\\\"<>^`{|}".utf8)

  private static func host(of authority: Substring) -> String? {
    let name: Substring
    let port: Substring
    if authority.hasPrefix("[") {
      guard let end = authority.firstIndex(of: "]") else { return nil }
      name = authority[authority.index(after: authority.startIndex)..<end]
      port = authority[authority.index(after: end)...]
      guard name.utf8.allSatisfy({ isHexadecimal($0) || $0 == UInt8(ascii: ":") }) else {
        return nil
      }
    } else {
      name = authority.prefix { $0 != ":" }
      port = authority.dropFirst(name.count)
      guard name.utf8.allSatisfy(isHostCharacter) else { return nil }
    }
    guard !name.isEmpty, port.isEmpty || isPort(port) else { return nil }
    return name.lowercased()
  }

  private static func isPort(_ text: Substring) -> Bool {
    text.first == ":" && text.dropFirst().utf8.allSatisfy { (48...57).contains($0) }
      && UInt16(text.dropFirst()) != nil
  }

  private static func isHexadecimal(_ byte: UInt8) -> Bool {
    (48...57).contains(byte) || (97...102).contains(byte | 32)
  }

  private static func isHostCharacter(_ byte: UInt8) -> Bool {
    (48...57).contains(byte) || (97...122).contains(byte | 32)
      || byte == UInt8(ascii: "-") || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "_")
  }
}

extension HTTPOptions {
  /// Checks that requests may be sent to an address at all; nothing is sent.
  ///
  /// - Throws: `StoreError` of kind `refused`, with a sentence for people.
  package func check(address: String) throws(StoreError) {
    _ = try HTTPRequest("GET", address).checked(insecure: insecure)
  }
}

extension HTTPRequest {
  /// Checks that the request can be sent, and may be sent where it is going.
  ///
  /// No method, header or URL can carry a line break into the request.
  /// - Throws: `StoreError` of kind `refused`.
  func checked(insecure: Bool) throws(StoreError) -> HTTPTarget {
    let target = try HTTPTarget(url)
    guard target.isEncrypted || target.isLoopback || insecure else {
      throw StoreError(
        .refused,
        "plain http to \(target.host) is refused, since anyone on the way could read it: "
          + "use https, or the option insecure")
    }
    guard Self.isToken(method) else { throw StoreError(.refused, "a method is malformed") }
    for (name, value) in headers {
      guard Self.isToken(name) else {
        throw StoreError(.refused, "the name of a header is malformed")
      }
      guard value.utf8.allSatisfy({ $0 >= 32 && $0 != 127 || $0 == 9 }) else {
        throw StoreError(.refused, "the header \(name) holds a control character")
      }
    }
    return target
  }

  /// Whether text is a token of RFC 9110, section 5.6.2: what a method and a header's name must be.
  package static func isToken(_ text: String) -> Bool {
    !text.isEmpty
      && text.utf8.allSatisfy {
        (48...57).contains($0) || (97...122).contains($0 | 32) || marks.contains($0)
      }
  }

  private static let marks = Array("!#$%&'*+-.^_`|~".utf8)
}
