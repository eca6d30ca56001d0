import BucketStore
import Foundation
import Platform
import TestSupport
import Testing

/// What boto3, Amazon's own Python client, wrote is read here, and the other way round.
@Suite struct S3OtherClientTests {
  private static let script = """
    import hashlib, sys
    import boto3
    from botocore.config import Config
    endpoint, access, secret, bucket, digest = sys.argv[1:]
    client = boto3.client(
        "s3", endpoint_url=endpoint, aws_access_key_id=access, aws_secret_access_key=secret,
        region_name="us-east-1", config=Config(s3={"addressing_style": "path"}))
    for name in ["ours/whole ü+1.jpg", "ours/parts.bin"]:
        answer = client.get_object(Bucket=bucket, Key=name)
        assert hashlib.sha256(answer["Body"].read()).hexdigest() == digest, name
        assert answer["ContentType"] == "image/jpeg", answer
        assert answer["Metadata"] == {"mtime": "1580702706.789000000"}, answer["Metadata"]
    keys = [row["Key"] for row in client.list_objects_v2(Bucket=bucket)["Contents"]]
    assert keys == ["ours/parts.bin", "ours/whole ü+1.jpg"], keys
    body = bytes(range(256)) * 40000
    client.put_object(Bucket=bucket, Key="theirs/whole ü+1.bin", Body=body[:1000],
        ContentType="text/x-odd", Metadata={"mtime": "1577836800.5"})
    client.put_object(Bucket=bucket, Key="theirs/folder/", Body=b"")
    upload = client.create_multipart_upload(Bucket=bucket, Key="theirs/parts.bin")["UploadId"]
    parts = []
    for number, start in enumerate(range(0, len(body), 5 << 20), 1):
        part = client.upload_part(Bucket=bucket, Key="theirs/parts.bin", UploadId=upload,
            PartNumber=number, Body=body[start:start + (5 << 20)])
        parts.append({"PartNumber": number, "ETag": part["ETag"]})
    client.complete_multipart_upload(Bucket=bucket, Key="theirs/parts.bin", UploadId=upload,
        MultipartUpload={"Parts": parts})
    """

  private func read(_ store: S3Store, _ object: ObjectName) throws -> [UInt8] {
    let sink = CollectingSink()
    _ = try store.get(GetRequest(object: object), into: sink, Call())
    return sink.bytes
  }

  @Test func botoReadsWhatWasWrittenHereAndTheOtherWayRound() throws {
    let fixture = try S3Fixture(.seaweed)
    try fixture.createBucket("shared")
    let store = fixture.makeStore(partSize: 5 << 20)
    let bytes = mixedBytes((5 << 20) + 77)
    let request = { (key: String) in
      PutRequest(
        object: fixture.object("shared", key), size: Int64(bytes.count),
        contentType: "image/jpeg", userMetadata: ["mtime": "1580702706.789000000"],
        condition: .none)
    }
    let whole = request("ours/whole ü+1.jpg")
    try store.put(whole, from: BytesSource(bytes), progress: { _ in }, Call())
    let parts = request("ours/parts.bin")
    let token = try store.beginUpload(parts, Call())
    try store.continueUpload(
      token, parts, from: BytesSource(bytes), progress: { _ in }, Call())

    let scratch = try Scratch()
    try scratch.file("client.py", Array(Self.script.utf8))
    let client = try Subprocess(
      [
        S3Server.environment + "/python", scratch.path("client.py"), fixture.server.endpoint,
        fixture.server.user.accessKey, fixture.server.user.secretKey,
        fixture.bucket("shared").description, Digest.hex(.sha256, of: bytes),
      ], in: scratch.path)
    #expect(client.wait() == 0)

    let body = (0..<40000).flatMap { _ in (0...255).map { UInt8($0) } }
    let theirs = fixture.object("shared", "theirs/whole ü+1.bin")
    #expect(try read(store, theirs) == Array(body.prefix(1000)))
    let facts = try store.info(theirs, Call())
    #expect(facts.userMetadata == ["mtime": "1577836800.5"])
    #expect(facts.contentType == "text/x-odd")
    #expect(try read(store, fixture.object("shared", "theirs/parts.bin")) == body)
    let page = try store.list(
      ListRequest(bucket: fixture.bucket("shared"), prefix: "theirs/", delimited: true), Call())
    #expect(page.objects.map(\.key).contains("theirs/whole ü+1.bin"))
    #expect(page.folders == ["theirs/folder/"])
  }
}
