import BucketStore
import Platform
import TestSupport
import Testing

@testable import bucketfs

/// Where a mount of S3 buckets goes, and with whose credentials.
struct S3PlanTests {
  private let scratch: Scratch
  private let config: String
  private var aws = AWSEnvironment()

  init() throws {
    scratch = try Scratch()
    config = scratch.path("config")
    let text = """
      [album]
      store = s3
      endpoint = https://s3.example.org
      region = eu-1
      bucket = photos
      access_key = AK
      secret_key = profile-secret

      [half]
      store = s3
      access_key = AK

      [shared]
      store = s3
      aws_profile = camera
      """
    try File.replace(config, with: Array(text.utf8))
    aws.credentialsFile = try scratch.file(
      "credentials",
      Array(
        """
        # by hand
        [default]
        aws_access_key_id = DEF
        aws_secret_access_key=def/secret+=
        [camera]
        aws_access_key_id = CAM
        aws_secret_access_key = cam-secret
        aws_session_token = cam-token
        """.utf8))
    aws.configFile = try scratch.file(
      "aws-config",
      Array(
        """
        [default]
        region = us-west-2
        s3 =
          addressing_style = path
        [profile camera]
        region = ap-south-1
        endpoint_url = https://camera.example.org
        """.utf8))
  }

  private func s3(_ source: String, _ options: String = "", _ aws: AWSEnvironment) throws -> S3Plan
  {
    let plan = try plan(source, options, aws)
    guard case .s3(let found) = plan.store else {
      throw Complaint(.failed, "not a plan of S3")
    }
    return found
  }

  private func plan(_ source: String, _ options: String, _ aws: AWSEnvironment) throws -> MountPlan
  {
    try MountPlan(
      source: source, lists: ["config=\(config)", options], environment: .init(), aws: aws)
  }

  private func login(_ plan: S3Plan) -> S3Credentials? { plan.provider() }

  @Test func theFilesOfTheAwsToolsAreUsedWhereNothingElseIsGiven() throws {
    let plan = try s3("s3://photos", "", aws)
    #expect(plan.address == (try S3Address(endpoint: nil, region: "us-west-2")))
    #expect(login(plan) == S3Credentials(accessKey: "DEF", secretKey: "def/secret+="))
  }

  @Test func aNamedProfileGoesBeforeTheKeysOfTheEnvironment() throws {
    var aws = aws
    aws.login = S3Credentials(accessKey: "ENV", secretKey: "env-secret")
    #expect(login(try s3("s3://photos", "", aws))?.accessKey == "ENV")
    let camera = S3Credentials(
      accessKey: "CAM", secretKey: "cam-secret", sessionToken: "cam-token")
    let plan = try s3("s3://photos", "aws_profile=camera", aws)
    #expect(login(plan) == camera)
    #expect(
      plan.address
        == (try S3Address(endpoint: "https://camera.example.org", region: "ap-south-1")))
    #expect(login(try s3("shared", "", aws)) == camera)
  }

  @Test func theOptionsGoBeforeTheEnvironmentAndThatBeforeTheFiles() throws {
    var aws = aws
    aws.region = "sa-east-1"
    aws.endpoint = "http://127.0.0.1:9000"
    #expect(
      try s3("s3://photos", "", aws).address
        == (try S3Address(endpoint: "http://127.0.0.1:9000", region: "sa-east-1")))
    let plan = try s3(
      "s3://photos", "endpoint=http://127.0.0.1:8333,region=x,addressing=virtual", aws)
    #expect(
      plan.address
        == (try S3Address(endpoint: "http://127.0.0.1:8333", region: "x", style: .virtual)))
  }

  @Test func aProfileOfOursHoldsAllThatIsNeeded() throws {
    let plan = try plan("album", "", aws)
    let found = try s3("album", "", aws)
    #expect(found.address == (try S3Address(endpoint: "https://s3.example.org", region: "eu-1")))
    #expect(login(found) == S3Credentials(accessKey: "AK", secretKey: "profile-secret"))
    #expect(plan.bucket == "photos")
    #expect(plan.source == "album")
    #expect(plan.storeAddress == "s3:https://s3.example.org")
  }

  @Test func withoutCredentialsTheMountIsRefusedUnlessToldToSignNothing() throws {
    let none = AWSEnvironment(
      credentialsFile: scratch.path("none"), configFile: scratch.path("none"))
    #expect(throws: Complaint.self) { try s3("s3://photos", "", none) }
    #expect(try s3("s3://photos", "unsigned", none).login == .unsigned)
    #expect(throws: Complaint.self) { try s3("half", "", aws) }
  }

  @Test func credentialsThatAnotherToolRenewsAreReadAgain() throws {
    let provider = try s3("s3://photos", "aws_profile=camera", aws).provider
    #expect(provider()?.sessionToken == "cam-token")
    try File.replace(
      aws.credentialsFile,
      with: Array(
        "[camera]\naws_access_key_id=C2\naws_secret_access_key=s2\naws_session_token=t2\n".utf8))
    #expect(provider() == S3Credentials(accessKey: "C2", secretKey: "s2", sessionToken: "t2"))
    try File.replace(aws.credentialsFile, with: Array("[other]\n".utf8))
    #expect(provider()?.accessKey == "C2")
  }

  @Test func theSourceIsShownWithoutAnyCredential() throws {
    let plan = try plan("s3://photos/2024/a b", "unsigned,endpoint=http://127.0.0.1:1", aws)
    #expect(plan.source == "s3://photos/2024/a b")
    #expect(plan.bucket == "photos")
    #expect(plan.prefix == "2024/a b")
    #expect(plan.root.prefix == "2024/a b/")
    #expect(!"\(try s3("album", "", aws))".contains("profile-secret"))
  }

  /// One service has everybody's buckets.
  @Test func eachBucketHasFoldersOfItsOwn() throws {
    let names = try ["s3://photos", "s3://films", "s3:"].map { try plan($0, "", aws).name }
    #expect(Set(names).count == 3)
    #expect(try plan("s3://photos", "", aws).name == names[0])
    let elsewhere = try plan("s3://photos", "endpoint=http://127.0.0.1:1", aws).name
    #expect(!names.contains(elsewhere))
  }

  @Test func whatWaitsIsOfTheAccessKeyThatItWasWrittenWith() throws {
    func owner(_ options: String, _ aws: AWSEnvironment) throws -> String {
      let plan = try plan("s3://photos", options, aws)
      let parts = try StoreParts(plan)
      defer { parts.stop() }
      return plan.identity(of: parts.user)
    }
    var other = aws
    other.login = S3Credentials(accessKey: "OTHER", secretKey: "s")
    #expect(try owner("", aws) == "s3:https://s3.amazonaws.com#DEF")
    #expect(try owner("", other) == "s3:https://s3.amazonaws.com#OTHER")
    #expect(try owner("endpoint=http://127.0.0.1:1", aws) == "s3:http://127.0.0.1:1#DEF")
    // {"sub":"u1"}
    other.login = S3Credentials(
      accessKey: "REF", secretKey: "s", sessionToken: "e30.eyJzdWIiOiJ1MSJ9.s")
    #expect(try owner("", other) == "s3:https://s3.amazonaws.com#REF/u1")
    #expect(try owner("unsigned", aws) == "s3:https://s3.amazonaws.com")
  }

  @Test func temporaryKeysOfAnAccountHaveOneOwner() {
    func owner(_ key: String, _ token: String?) -> String {
      S3Credentials(accessKey: key, secretKey: "s", sessionToken: token).owner
    }
    #expect(owner("ASIAY34FZKBOKMUTVV7A", "t") == "account 609629065308")
    #expect(owner("ASIAQNZGKIQY56JQ7WML", "t") == "account 29608264753")
    #expect(owner("ASIAY34FZKBOKMAAAAAA", "t") == "account 609629065308")
    // What is no such key names itself.
    for key in ["AKIAY34FZKBOKMUTVV7A", "ASIA", "", "ASIAy34fzkbokmutvv7a"] {
      #expect(owner(key, "t") == key)
    }
    #expect(owner("ASIAY34FZKBOKMUTVV7A", nil) == "ASIAY34FZKBOKMUTVV7A")
  }

  @Test func nothingIsSentWithTheCredentialsOfAnother() throws {
    let parts = try StoreParts(try plan("s3://photos", "", aws))
    defer { parts.stop() }
    #expect(parts.gate == .open)
    try File.replace(
      aws.credentialsFile,
      with: Array("[default]\naws_access_key_id=B\naws_secret_access_key=s2\n".utf8))
    #expect(parts.gate == .signedOut)
  }
}
