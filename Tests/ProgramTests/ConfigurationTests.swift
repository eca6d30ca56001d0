import Glibc
import Platform
import TestSupport
import Testing

@testable import bucketfs

struct ConfigurationTests {
  private func complaint(_ body: () throws(Complaint) -> Void) -> Complaint? {
    do throws(Complaint) {
      try body()
      return nil
    } catch {
      return error
    }
  }

  @Test func profilesAreRead() throws {
    let text = """
      # a comment
      ; another
      [bucketfs]
      store = supabase
        url=https://a.supabase.co
      key = s3cret = yes
      insecure

      [camera]
      store = dir
      path = /srv/camera
      max_age = 5s
      """
    let configuration = try Configuration(file: "config", text: text)
    #expect(configuration.profiles.keys.sorted() == ["bucketfs", "camera"])
    var settings = try Settings.standard()
    try configuration.apply("bucketfs", to: &settings)
    #expect(settings.store == "supabase")
    #expect(settings.url == "https://a.supabase.co")
    #expect(settings.key == Secret("s3cret = yes"))
    #expect(settings.insecure)
    settings = try Settings.standard()
    try configuration.apply("camera", to: &settings)
    #expect(settings.path == "/srv/camera")
    #expect(settings.maxAge == .seconds(5))
  }

  @Test func linesEndInCarriageReturnsToo() throws {
    let configuration = try Configuration(file: "config", text: "[a]\r\npath = /x\r\n")
    var settings = Settings()
    try configuration.apply("a", to: &settings)
    #expect(settings.path == "/x")
  }

  @Test(arguments: [
    ("path = /x", "config:1: a setting before the first profile"),
    ("[a b]", "config:1: a profile's name is letters, digits, dots, - and _"),
    ("[a", "config:1: a profile's name is letters, digits, dots, - and _"),
    ("[../a]", "config:1: a profile's name is letters, digits, dots, - and _"),
    ("[a]\n\n[a]", "config:3: the profile a is there already"),
  ])
  func aBrokenFileIsRefusedWithItsLine(text: String, sentence: String) throws {
    let complaint = try #require(
      complaint { () throws(Complaint) in _ = try Configuration(file: "config", text: text) })
    #expect(complaint.sentence == sentence)
    #expect(complaint.code == .usage)
  }

  @Test(arguments: [
    ("[a]\n\ncach_size = 1M", "config:3: unknown option cach_size", "did you mean cache_size?"),
    ("[a]\nmax_age = soon", "config:2: option max_age: soon is not", "write max_age=TIME"),
    ("[a]\nmax_age = 1\nmax_age = 2", "config:3: option max_age is there already", nil),
    ("[a]\nconfig = /x", "config:2: option config belongs on the command line only", nil),
    ("[b]", "there is no profile a in config", "did you mean b?"),
    ("", "there is no profile a in config", "add a section [a] with store, url and key to it"),
  ])
  func aWrongProfileIsRefusedWithItsLine(text: String, sentence: String, hint: String?) throws {
    let complaint = try #require(
      complaint { () throws(Complaint) in
        var settings = try Settings.standard()
        try Configuration(file: "config", text: text).apply("a", to: &settings)
      })
    #expect(complaint.sentence.hasPrefix(sentence))
    #expect(complaint.hint == hint)
    #expect(complaint.code == .usage)
  }

  @Test func aMissingFileHasNoProfiles() throws {
    #expect(try Configuration.read("/nowhere/config").profiles.isEmpty)
  }

  @Test(arguments: [
    ("key = k", 0o600, true), ("key = k", 0o400, true), ("key = k", 0o640, false),
    ("key = k", 0o604, false), ("apikey = k", 0o644, false), ("path = /x", 0o644, true),
    ("header.Authorization = k", 0o644, false), ("header.X-Trace = k", 0o644, true),
    ("path = /x", 0o664, false), ("path = /x", 0o646, false),
  ])
  func aFileThatShowsACredentialIsRefused(line: String, mode: mode_t, accepted: Bool) throws {
    let scratch = try Scratch()
    let path = scratch.path + "/config"
    try File.replace(path, with: Array("[bucketfs]\n\(line)\n".utf8))
    chmod(path, mode)
    let complaint = complaint { () throws(Complaint) in _ = try Configuration.read(path) }
    #expect((complaint == nil) == accepted)
    if let complaint {
      #expect(complaint.code == .refused)
      #expect(complaint.hint == "chmod 600 \(path)")
      #expect(complaint.sentence.contains(path))
    }
  }

  @Test(.enabled(if: getuid() == 0, "only root can give files away"))
  func aFileOfAnotherUserIsRefused() throws {
    let scratch = try Scratch()
    let path = scratch.path + "/config"
    try File.replace(path, with: Array("[bucketfs]\n".utf8))
    chown(path, 65534, 65534)
    let complaint = complaint { () throws(Complaint) in _ = try Configuration.read(path) }
    #expect(try #require(complaint).sentence.contains("belongs to another user"))
  }

  @Test func aPipeOrFolderIsNoConfiguration() throws {
    let scratch = try Scratch()
    mkfifo(scratch.path + "/pipe", 0o600)
    for path in [scratch.path + "/pipe", scratch.path] {
      let complaint = complaint { () throws(Complaint) in _ = try Configuration.read(path) }
      #expect(try #require(complaint).code == .usage)
    }
  }
}
