import Platform
import Testing

@testable import bucketfs

struct OptionTests {
  private func settings(_ list: String) throws(Complaint) -> Settings {
    var settings = try Settings.standard()
    try Option.apply(list: list, to: &settings)
    return settings
  }

  private func refusal(_ list: String) -> Complaint? {
    do throws(Complaint) {
      _ = try settings(list)
      return nil
    } catch {
      return error
    }
  }

  @Test func defaultsAreThoseOfTheTable() throws {
    let settings = try Settings.standard()
    #expect(settings.maxAge == .seconds(1))
    #expect(settings.timeout == .seconds(10))
    #expect(settings.cacheSize == 256 << 20)
    #expect(settings.listingCacheSize == 100 << 20)
    #expect(settings.partSize == 8 << 20)
    #expect(settings.umask == 0o022)
    #expect(settings.logLevel == "warning")
  }

  @Test(arguments: [
    ("10", 10_000), ("10s", 10_000), ("500ms", 500), ("1.5s", 1500), ("5m", 300_000),
    ("2h", 7_200_000), ("1d", 86_400_000), ("0", 0), ("1min", 60_000),
  ])
  func timesAreRead(text: String, milliseconds: Int64) throws {
    #expect(try settings("max_age=\(text)").maxAge == .milliseconds(milliseconds))
  }

  @Test(arguments: [
    ("4096", 4096), ("1K", 1024), ("256M", 256 << 20), ("256MiB", 256 << 20), ("1.5G", 3 << 29),
    ("2T", 2 << 40), ("7b", 7), ("3kb", 3072),
  ])
  func sizesAreRead(text: String, bytes: Int64) throws {
    #expect(try settings("cache_size=\(text)").cacheSize == bytes)
  }

  @Test func unlimitedIsNoBound() throws {
    let settings = try settings("cache_size=unlimited,listing_cache_size=unlimited")
    #expect(settings.cacheSize == nil)
    #expect(settings.listingCacheSize == nil)
  }

  @Test func sizesBelowTheLeastCountAsTheLeast() throws {
    let settings = try settings("cache_size=-5M,listing_cache_size=1")
    #expect(settings.cacheSize == 0)
    #expect(settings.listingCacheSize == 4096)
  }

  @Test(arguments: [
    "max_age=soon", "max_age=-1", "max_age=", "max_age", "timeout=0", "timeout=1y",
    "cache_size=much", "cache_size=1e30", "cache_size=99999999999T", "cache_size=inf",
    "cache_size=nan", "part_size=1K", "part_size=2G", "umask=999", "umask=7777",
    "ro=perhaps", "log_level=loud", "uid=no such user", "uid=4294967295", "uid=-1",
    "header.=x", "header.a b=x", "prefix=", "max_age=1s2", "timeout=999999999999d",
  ])
  func valuesThatMakeNoSenseAreRefused(list: String) throws {
    let complaint = try #require(refusal(list))
    #expect(complaint.code == .usage)
    #expect(complaint.hint != nil || list.hasPrefix("header"))
  }

  @Test func aComplaintNamesOptionValueAndForm() throws {
    let complaint = try #require(refusal("max_age=soon"))
    #expect(
      complaint.sentence == "option max_age: soon is not a time such as 10s, 500ms or 5m")
    #expect(complaint.hint == "write max_age=TIME")
  }

  @Test(arguments: [
    ("cach_size=1", "cache_size"), ("maxage=1", "max_age"), ("alow_other", "allow_other"),
    ("timeuot=3s", "timeout"), ("umsk=022", "umask"),
  ])
  func anUnknownOptionIsRefusedWithTheNearestName(list: String, near: String) throws {
    #expect(try #require(refusal(list)).hint == "did you mean \(near)?")
  }

  @Test func nothingIsSuggestedWhenNothingIsNear() throws {
    let complaint = try #require(refusal("frobnicate=1"))
    #expect(complaint.sentence == "unknown option frobnicate")
    #expect(complaint.hint == "bucketfs mount --help lists the options")
  }

  @Test func wordsOfMountAreAccepted() throws {
    let list =
      "rw,dev,suid,nodev,nosuid,exec,noexec,user,users,_netdev,nofail,auto,noauto,defaults,"
      + "x-systemd.automount,x-gvfs-show,relatime,noatime,comment=a"
    let settings = try settings(list + ",max_age=3s")
    #expect(settings.maxAge == .seconds(3))
    #expect(settings.mountWords.contains("noexec"))
  }

  @Test func ownWordsWinOverThoseOfMount() throws {
    let settings = try settings("ro,allow_other,nonempty")
    #expect(settings.readOnly && settings.allowOther && settings.nonEmpty)
    #expect(settings.mountWords.isEmpty)
  }

  @Test func sloppyLeavesUnknownOptionsOutAndKnowsTheOthers() throws {
    var settings = try Settings.standard()
    try Option.apply(list: "frobnicate=1,max_age=4s", to: &settings, sloppy: true)
    #expect(settings.maxAge == .seconds(4))
  }

  @Test func quotedValuesMayHoldCommas() throws {
    let settings = try settings("bucket=\"a,b\",header.X-Two=\"1,2\"")
    #expect(settings.bucket == "a,b")
    #expect(settings.headers == [Settings.Header(name: "X-Two", value: Secret("1,2"))])
  }

  @Test(arguments: ["key=abc", "apikey=abc", "header.Authorization=abc", "header.apikey=abc"])
  func credentialsAreRefusedOnTheCommandLine(list: String) throws {
    let complaint = try #require(refusal(list))
    #expect(complaint.sentence.contains("credential"))
    #expect(!complaint.text.contains("abc"))
  }

  @Test(arguments: ["store=dir", "url=https://a", "path=/a"])
  func whatAProfileSaysIsRefusedOnTheCommandLine(list: String) throws {
    #expect(try #require(refusal(list)).sentence.contains("configuration file"))
  }

  @Test func aHeaderCannotSmuggleAnotherOne() throws {
    var settings = Settings()
    let option = try Option.named("header.X", from: .commandLine)
    #expect(throws: Complaint.self) {
      try option.apply("a\r\nAuthorization: b", to: &settings, from: .commandLine)
    }
  }

  @Test func aSecretShowsNothingOfItself() {
    let secret = Secret("hunter2")
    var dumped = ""
    dump(secret, to: &dumped)
    for text in ["\(secret)", String(reflecting: secret), "\([secret])", dumped] {
      #expect(!text.contains("hunter2"))
    }
  }

  @Test func usersAndGroupsMayBeNamed() throws {
    let settings = try settings("uid=root,gid=root")
    #expect(settings.uid == 0)
    #expect(settings.gid == 0)
  }
}
