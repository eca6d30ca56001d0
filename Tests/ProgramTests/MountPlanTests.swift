import Glibc
import Platform
import TestSupport
import Testing

@testable import bucketfs

struct MountPlanTests {
  private let scratch: Scratch
  private let config: String

  init() throws {
    scratch = try Scratch()
    config = scratch.path + "/config"
    let text = """
      [bucketfs]
      url = https://abc.supabase.co
      key = profile-key
      max_age = 7s
      bucket = photos

      [bare]
      url = https://abc.supabase.co

      [nowhere]
      store = supabase

      [camera]
      store = dir
      path = /srv/camera
      """
    try File.replace(config, with: Array(text.utf8))
  }

  private func plan(
    _ source: String?, _ options: String = "", _ environment: SupabaseEnvironment = .init()
  ) throws(Complaint) -> MountPlan {
    try MountPlan(
      source: source, lists: ["config=\(config)", options], environment: environment)
  }

  @Test func noSourceIsTheStandardProfile() throws {
    let plan = try plan(nil)
    #expect(plan.store == .supabase(url: "https://abc.supabase.co"))
    #expect(plan.key == Secret("profile-key"))
    #expect(plan.source == "bucketfs")
    #expect(plan.name == "bucketfs")
    #expect(plan.bucket == "photos")
    #expect(plan.settings.maxAge == .seconds(7))
    #expect(plan.cacheDirectory.hasSuffix("/bucketfs/bucketfs"))
  }

  @Test func theCommandLineWinsOverTheProfile() throws {
    let plan = try plan("bucketfs", "max_age=2s,bucket=other,prefix=/a/b/")
    #expect(plan.settings.maxAge == .seconds(2))
    #expect(plan.bucket == "other")
    #expect(plan.prefix == "a/b")
  }

  @Test func withoutAProfileTheEnvironmentNamesTheProject() throws {
    try File.replace(config, with: [])
    let environment = SupabaseEnvironment(url: "https://env.supabase.co", key: Secret("env"))
    let plan = try plan(nil, "", environment)
    #expect(plan.store == .supabase(url: "https://env.supabase.co"))
    #expect(plan.key == Secret("env"))
    #expect(plan.source == "supabase:https://env.supabase.co")
  }

  @Test func theProfilesKeyWinsOverTheEnvironments() throws {
    let environment = SupabaseEnvironment(url: nil, key: Secret("env"))
    #expect(try plan(nil, "", environment).key == Secret("profile-key"))
    #expect(try plan("bare", "", environment).key == Secret("env"))
  }

  @Test func theEnvironmentsKeyGoesToItsOwnProjectAlone() throws {
    let other = SupabaseEnvironment(url: "https://evil.example", key: Secret("env"))
    #expect(try plan("bare", "", other).key == nil)
    #expect(try plan("supabase:https://abc.supabase.co", "", other).key == nil)
    let same = SupabaseEnvironment(
      url: "https://abc.supabase.co/storage/v1/", key: Secret("env"))
    #expect(try plan("bare", "", same).key == Secret("env"))
  }

  @Test func aFolderGetsAKeyOfNobody() throws {
    let environment = SupabaseEnvironment(url: nil, key: Secret("env"))
    let plan = try plan("camera", "", environment)
    #expect(plan.store == .directory(path: "/srv/camera"))
    #expect(plan.key == nil)
  }

  @Test func sourcesWithoutAProfileHaveFoldersOfTheirOwn() throws {
    let names = try ["dir:/a", "dir:/b", "supabase:https://a", "supabase:https://b"].map {
      try plan($0).name
    }
    #expect(Set(names).count == 4)
    #expect(try plan("supabase:https://a/bucket").name == names[2])
    for name in names { #expect(Source.isProfileName(name)) }
  }

  @Test func foldersCanBeChosen() throws {
    let plan = try plan("camera", "cache_dir=/x/c,data_dir=/x/d")
    #expect(plan.cacheDirectory == "/x/c")
    #expect(plan.dataDirectory == "/x/d")
  }

  @Test func theShownSourceNamesBucketAndPrefix() throws {
    #expect(
      try plan("supabase:https://a/my%20photos/x").source == "supabase:https://a/my%20photos/x")
    #expect(try plan("camera", "bucket=b").source == "camera")
  }

  @Test(arguments: [
    ("missing", "there is no profile missing"),
    ("nowhere", "names no address"),
  ])
  func aProfileThatCannotBeMountedIsRefused(source: String, words: String) throws {
    do throws(Complaint) {
      _ = try plan(source)
      Issue.record("accepted")
    } catch {
      #expect(error.code == .usage)
      #expect(error.sentence.contains(words))
      #expect(error.hint != nil)
    }
  }

  @Test func aPrefixNeedsABucket() throws {
    #expect(throws: Complaint.self) { try plan("dir:/a", "prefix=x") }
  }

  @Test func aPlanPrintsNoCredential() throws {
    var text = ""
    dump(try plan(nil), to: &text)
    #expect(!text.contains("profile-key"))
    #expect(text.contains("abc.supabase.co"))
  }
}
