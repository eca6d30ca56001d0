import BucketStore
import Foundation
import Glibc
import Platform
import StorageEmulator
import TestSupport
import Testing

/// Names of any bytes: written, stored, and listed again by who has never seen them.
@Suite(.serialized) struct NameRoundTripTests {
  private static let options = "max_age=1,bucket=album"

  /// Names that people and their programs give, and what is next to the border.
  private static let chosen: [ByteString] = [
    "Schöne Grüße 灯泡 😀.jpg", "file~", "#file#", ".~lock.x#", ".hidden", "a=b", "=C3", "=3D",
    "=3DC3=BC", "100%.txt", "%41%2e", "a+b c;d?e&f", "-dash", "quote\"'`$", "{brace}[1]<2>|^",
    // The same letters composed and decomposed are different names.
    "\u{E9}t\u{E9}.txt", "e\u{301}te\u{301}.txt", "\u{C5}", "A\u{30A}", "\u{212B}", "\u{AC00}",
    "\u{1100}\u{1161}",
    ByteString([0xFF, 0x61, 0xC3] as [UInt8]), ByteString([0xED, 0xA0, 0x80] as [UInt8]),
    ByteString(String(repeating: "n", count: 255)),
    ByteString(String(repeating: "ü", count: 127) + "n"),
    ByteString(String(repeating: "灯", count: 85)),
  ]

  /// The chosen names, and random ones that a file may have.
  private static let names: [ByteString] = {
    var random = SeededGenerator(seed: 255)
    var names = Set(chosen)
    while names.count < chosen.count + 30 {
      let bytes = random.bytes(Int.random(in: 1...40, using: &random)).filter { byte in
        byte >= 0x20 && byte != 0x7F && byte != ByteString.slash && byte != UInt8(ascii: "\\")
      }
      guard !bytes.isEmpty, bytes != Array(".".utf8), bytes != Array("..".utf8) else { continue }
      names.insert(ByteString(bytes))
    }
    return Array(names)
  }()

  private static func content(_ name: ByteString) -> [UInt8] { name.bytes.reversed() + [10] }

  private static func path(_ folder: String, _ name: ByteString) -> [CChar] {
    (Array(folder.utf8) + [ByteString.slash] + name.bytes + [0]).map { CChar(bitPattern: $0) }
  }

  /// Writes a file as programs do; 0, or the errno that they see.
  private func write(_ bytes: [UInt8], to name: ByteString, in folder: String) -> CInt {
    let descriptor = open(Self.path(folder, name), O_WRONLY | O_CREAT | O_EXCL, 0o644)
    guard descriptor >= 0 else { return errno }
    let count = Glibc.write(descriptor, bytes, bytes.count)
    let failure = count == bytes.count ? 0 : errno
    return close(descriptor) == 0 ? failure : errno
  }

  private func read(_ name: ByteString, in folder: String) -> [UInt8]? {
    let descriptor = open(Self.path(folder, name), O_RDONLY)
    guard descriptor >= 0 else { return nil }
    let file = File(owning: descriptor)
    do { return try file.readToEnd() } catch { return nil }
  }

  /// Every name that readdir(3) gives, in the order of their bytes.
  private func list(_ folder: String) throws -> [ByteString] {
    let names = try Directory(folder).names()
    return names.filter { $0 != "." && $0 != ".." }.sorted()
  }

  @Test(.timeLimit(.minutes(6)), arguments: [true, false])
  func everyNameComesBackFromTheStore(isOnline: Bool) throws {
    let project = try Project()
    let machine = project.machine
    project.emulator.createBucket("album")
    try project.mount(Self.options)
    if !isOnline { project.emulator.stop() }
    let folder = project.path("Größe #1")
    #expect(mkdir(folder, 0o755) == 0)
    for name in Self.names {
      #expect(write(Self.content(name), to: name, in: folder) == 0, "\(name)")
    }
    #expect(try list(folder) == Self.names.sorted())
    if !isOnline {
      try project.emulator.start(port: project.port)
      #expect(try machine.bucketfs("online", machine.mountpoint).code == 0)
    }
    let wait = try project.wait(150)
    #expect(wait.code == 0, "\(wait.error)")

    var keys: [ByteString: ByteString] = [:]
    for name in Self.names {
      let key = try #require(KeyEncoding.encode.encode("Größe #1/" + name))
      #expect(keys.updateValue(name, forKey: key) == nil, "\(key) twice")
    }
    let stored = project.emulator.keys("album").filter { keys[$0] != nil }
    #expect(stored.count == Self.names.count)
    for (key, name) in keys {
      #expect(try project.emulator.bytes("album", key) == Self.content(name), "\(name)")
    }
    // Here with nothing kept any more, and where nothing was ever kept.
    #expect(try machine.bucketfs("clear", machine.mountpoint).code == 0)
    try machine.unmount()
    try project.mount(Self.options)
    let other = try Machine(environment: ["SUPABASE_KEY": project.emulator.serviceKey])
    try other.mount(project.source, Self.options)
    for there in [folder, other.mountpoint + "/Größe #1"] {
      #expect(try list(there) == Self.names.sorted())
      for name in Self.names { #expect(read(name, in: there) == Self.content(name), "\(name)") }
    }
    try machine.unmount()
    try other.unmount()
  }

  /// A key has a length that the store bounds: it is told when the file is made, not when it is
  /// sent.
  @Test(.timeLimit(.minutes(2))) func aPathThatIsTooLongForTheStoreIsRefusedWhenItIsMade() throws {
    let project = try Project()
    project.emulator.createBucket("album")
    try project.mount(Self.options)
    let long = String(repeating: "ü", count: 127)
    let folder = project.path(long)
    #expect(mkdir(folder, 0o755) == 0)
    #expect(write([1], to: "short", in: folder) == 0)
    #expect(write([1], to: ByteString(long), in: folder) == ENAMETOOLONG)
    #expect(mkdir(folder + "/" + long, 0o755) == -1 && errno == ENAMETOOLONG)
    #expect(rename(folder + "/short", folder + "/" + long) == -1 && errno == ENAMETOOLONG)
    let wait = try project.wait(60)
    #expect(wait.code == 0, "\(wait.error)")
    #expect(try list(folder) == ["short"])
    try project.machine.unmount()
  }
}
