import BucketStore
import Platform
import TestSupport
import Testing

/// Signatures, compared with those that AWS publishes for its example requests.
@Suite struct S3SignatureTests {
  /// One published request and its signature.
  struct Vector: Sendable, CustomTestStringConvertible {
    let name: String
    var method = "GET"
    var path = "/"
    var query: [(name: String, value: ByteString)] = []
    var headers: [(name: String, value: String)] = []
    var payload = Digest.hex(.sha256, of: [])
    let signature: String

    var testDescription: String { name }
  }

  private static let suite = S3Signature(
    S3Credentials(
      accessKey: "AKIDEXAMPLE", secretKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
    region: "us-east-1", service: "service")
  private static let suiteTime = Timestamp(seconds: 1_440_938_160)

  private static let vectors: [Vector] = [
    Vector(
      name: "get-vanilla",
      signature: "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
    Vector(
      name: "get-vanilla-query-order-key-case",
      query: [("Param2", "value2"), ("Param1", "value1")],
      signature: "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"),
    Vector(
      name: "get-unreserved",
      path: "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
      signature: "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"),
    Vector(
      name: "get-utf8", path: Percent.encodePath("/\u{1234}"),
      signature: "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"),
    Vector(
      name: "get-vanilla-utf8-query", query: [("\u{1234}", "bar")],
      signature: "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"),
    Vector(
      name: "get-header-value-trim",
      headers: [("My-Header1", " value1"), ("My-Header2", " \"a   b   c\"")],
      signature: "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"),
    Vector(
      name: "post-vanilla", method: "POST",
      signature: "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
    Vector(
      name: "post-x-www-form-urlencoded", method: "POST",
      headers: [("Content-Type", "application/x-www-form-urlencoded")],
      payload: Digest.hex(.sha256, of: Array("Param1=value1".utf8)),
      signature: "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"),
  ]

  @Test(arguments: vectors)
  func theSuiteOfVersion4IsSignedAsPublished(_ vector: Vector) {
    let headers =
      [("Host", "example.amazonaws.com"), ("X-Amz-Date", S3Signature.time(Self.suiteTime))]
      + vector.headers
    let text = Self.suite.authorization(
      vector.method, path: vector.path, query: S3Signature.query(vector.query), headers: headers,
      payload: vector.payload, at: Self.suiteTime)
    #expect(text.hasSuffix("Signature=\(vector.signature)"))
    #expect(
      text.hasPrefix(
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "))
  }

  private static let store = S3Signature(
    S3Credentials(
      accessKey: "AKIAIOSFODNN7EXAMPLE", secretKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    region: "us-east-1")

  private static let storeVectors: [Vector] = [
    Vector(
      name: "get-object", path: "/test.txt", headers: [("Range", "bytes=0-9")],
      signature: "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
    Vector(
      name: "put-object", method: "PUT", path: Percent.encodePath("/test$file.text"),
      headers: [
        ("Date", "Fri, 24 May 2013 00:00:00 GMT"), ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
      ], payload: Digest.hex(.sha256, of: Array("Welcome to Amazon S3.".utf8)),
      signature: "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"),
    Vector(
      name: "get-lifecycle", query: [("lifecycle", "")],
      signature: "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
    Vector(
      name: "list-objects", query: [("prefix", "J"), ("max-keys", "2")],
      signature: "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
  ]

  @Test(arguments: storeVectors)
  func theExamplesOfS3AreSignedAsPublished(_ vector: Vector) {
    let moment = Timestamp(seconds: 1_369_353_600)
    let headers =
      [
        ("Host", "examplebucket.s3.amazonaws.com"), ("x-amz-content-sha256", vector.payload),
        ("x-amz-date", "20130524T000000Z"),
      ] + vector.headers
    let text = Self.store.authorization(
      vector.method, path: vector.path, query: S3Signature.query(vector.query), headers: headers,
      payload: vector.payload, at: moment)
    #expect(text.hasSuffix("Signature=\(vector.signature)"))
  }

  @Test func aQueryIsSortedByWhatIsSent() {
    let query = S3Signature.query([
      ("prefix", "a/b c+ü"), ("list-type", "2"), ("prefix", "a"), ("a-", ""), ("a", "x"),
    ])
    #expect(query == "a=x&a-=&list-type=2&prefix=a&prefix=a%2Fb%20c%2B%C3%BC")
  }

  @Test func credentialsShowNoSecretWhenPrinted() {
    let credentials = S3Credentials(accessKey: "AK", secretKey: "hush", sessionToken: "quiet")
    var dumped = ""
    dump(credentials, to: &dumped)
    for text in ["\(credentials)", String(reflecting: credentials), dumped] {
      #expect(!text.contains("hush") && !text.contains("quiet"))
    }
  }
}
