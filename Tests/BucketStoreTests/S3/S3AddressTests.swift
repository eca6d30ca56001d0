import BucketStore
import Platform
import Testing

@Suite struct S3AddressTests {
  private func target(
    _ endpoint: String?, _ style: S3Address.Style? = nil, region: String? = nil,
    bucket: ByteString? = "photos", key: ByteString? = "a b/c"
  ) throws -> String {
    try S3Address(endpoint: endpoint, region: region, style: style)
      .target(bucket: bucket, key: key).url
  }

  @Test func amazonIsAskedByTheBucketsHost() throws {
    #expect(
      try target(nil, region: "eu-west-1")
        == "https://photos.s3.eu-west-1.amazonaws.com/a%20b/c")
    #expect(try target(nil, bucket: nil, key: nil) == "https://s3.us-east-1.amazonaws.com/")
    #expect(try target(nil, key: nil) == "https://photos.s3.us-east-1.amazonaws.com/")
  }

  @Test func aNameWithADotIsInThePathOverTLS() throws {
    #expect(
      try target(nil, bucket: "my.photos") == "https://s3.us-east-1.amazonaws.com/my.photos/a%20b/c"
    )
    #expect(
      try target("http://localhost:9000", .virtual, bucket: "my.photos")
        == "http://my.photos.localhost:9000/a%20b/c")
  }

  @Test func anotherEndpointIsAskedByThePath() throws {
    #expect(try target("http://127.0.0.1:8333/") == "http://127.0.0.1:8333/photos/a%20b/c")
    #expect(
      try target("https://ref.supabase.co/storage/v1/s3")
        == "https://ref.supabase.co/storage/v1/s3/photos/a%20b/c")
    #expect(
      try target("https://Example.org:443", .virtual) == "https://photos.example.org/a%20b/c")
  }

  @Test(arguments: [
    "example.org", "ftp://example.org", "https://", "https://user:secret@example.org",
    "https://example.org?x=1", "https://exa mple.org",
  ])
  func whatIsNoEndpointIsRefused(_ text: String) {
    #expect(throws: StoreError.self) { try S3Address(endpoint: text) }
  }

  @Test(arguments: ["", "eu west", "a/b", "x.example.org"])
  func whatIsNoRegionIsRefused(_ text: String) {
    #expect(throws: StoreError.self) { try S3Address(endpoint: nil, region: text) }
  }
}
