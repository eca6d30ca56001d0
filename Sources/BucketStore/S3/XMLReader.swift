import CExpat

/// Reads XML element by element (expat), without building a tree.
///
/// What it reads comes from outside: a document type, which could define entities, ends it, and so
/// does anything nested deeper than a bound. Not to be shared between threads.
final class XMLReader {
  /// Elements within each other.
  static let deepest = 32

  private let parser: XML_Parser
  private var path: [String] = []
  private var texts: [[UInt8]] = []
  private let take: ([String], [UInt8]) -> Void
  private var isRefused = false

  private init(_ parser: XML_Parser, _ take: @escaping ([String], [UInt8]) -> Void) {
    self.parser = parser
    self.take = take
  }

  /// Reads a document.
  ///
  /// - Parameter take: called at the end of each element with the names that lead to it, without
  ///   their namespaces, and the text that stands right in it.
  /// - Returns: false when it is no well-formed document within the bounds; elements that ended
  ///   before were taken.
  static func read(_ document: [UInt8], _ take: @escaping ([String], [UInt8]) -> Void) -> Bool {
    guard document.count <= 64 << 20, let parser = XML_ParserCreate(nil) else { return false }
    defer { XML_ParserFree(parser) }
    let reader = XMLReader(parser, take)
    return withExtendedLifetime(reader) { reader.run(document) }
  }

  private func run(_ document: [UInt8]) -> Bool {
    XML_SetUserData(parser, Unmanaged.passUnretained(self).toOpaque())
    XML_SetElementHandler(
      parser,
      { context, name, _ in
        guard let name else { return }
        XMLReader.of(context)?.begin(String(cString: name))
      }, { context, _ in XMLReader.of(context)?.end() })
    XML_SetCharacterDataHandler(parser) { context, text, count in
      let bytes = UnsafeRawBufferPointer(start: text, count: Int(count))
      XMLReader.of(context)?.add(bytes)
    }
    XML_SetStartDoctypeDeclHandler(parser) { context, _, _, _, _ in
      XMLReader.of(context)?.refuse()
    }
    let status = document.withUnsafeBytes { bytes in
      XML_Parse(
        parser, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), CInt(bytes.count), 1)
    }
    return status == XML_STATUS_OK && !isRefused
  }

  private static func of(_ context: UnsafeMutableRawPointer?) -> XMLReader? {
    context.map { Unmanaged<XMLReader>.fromOpaque($0).takeUnretainedValue() }
  }

  private func begin(_ name: String) {
    guard path.count < Self.deepest else { return refuse() }
    let local = name.split(separator: ":").last.map(String.init) ?? name
    path.append(local)
    texts.append([])
  }

  private func add(_ bytes: UnsafeRawBufferPointer) {
    guard !texts.isEmpty else { return }
    texts[texts.count - 1].append(contentsOf: bytes)
  }

  private func end() {
    guard !isRefused, let text = texts.popLast() else { return }
    take(path, text)
    path.removeLast()
  }

  private func refuse() {
    isRefused = true
    XML_StopParser(parser, XML_Bool(0))
  }
}
