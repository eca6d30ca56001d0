import Platform
import Testing

@testable import bucketfs

struct SourceTests {
  private let url = "https://abc.supabase.co"

  @Test(
    arguments: [
      ("supabase:https://abc.supabase.co", nil, nil),
      ("supabase:https://abc.supabase.co/", nil, nil),
      ("supabase:https://abc.supabase.co/storage/v1", nil, nil),
      ("supabase:https://abc.supabase.co/photos", "photos", nil),
      ("supabase:https://abc.supabase.co/photos/", "photos", nil),
      ("supabase:https://abc.supabase.co/photos/2024/may", "photos", "2024/may"),
      ("supabase:https://abc.supabase.co/my%20photos/a%2Bb%25", "my photos", "a+b%"),
    ] as [(String, String?, String?)])
  func aSupabaseSourceIsRead(text: String, bucket: String?, prefix: String?) throws {
    let source = try Source(text)
    #expect(
      source
        == .supabase(
          url: url, bucket: bucket.map { ByteString($0) }, prefix: prefix.map { ByteString($0) }))
  }

  @Test func aLocalAddressKeepsItsPort() throws {
    #expect(
      try Source("supabase:http://127.0.0.1:54321/b")
        == .supabase(url: "http://127.0.0.1:54321", bucket: "b", prefix: nil))
  }

  @Test(
    arguments: [
      ("s3:", nil, nil), ("s3://", nil, nil), ("s3://photos", "photos", nil),
      ("s3://photos/", "photos", nil),
      ("s3://my.photos_1/2024/a%20b c", "my.photos_1", "2024/a%20b c"),
    ] as [(String, String?, String?)])
  func anS3SourceIsReadAsItIs(text: String, bucket: String?, prefix: String?) throws {
    #expect(
      try Source(text)
        == .s3(bucket: bucket.map { ByteString($0) }, prefix: prefix.map { ByteString($0) }))
  }

  @Test func aFolderAndAProfileAreRead() throws {
    #expect(try Source("dir:/srv/x") == .directory(path: "/srv/x"))
    #expect(try Source("camera-2.old") == .profile("camera-2.old"))
  }

  @Test(arguments: [
    ("s3:bucket", "names no bucket"),
    ("s3:///prefix", "no bucket can have this name"),
    ("s3://my bucket", "no bucket can have this name"),
    ("https://abc.supabase.co", "does not say what kind of store"),
    ("ftp:x", "no kind of store called ftp"),
    ("dir:", "names no folder"),
    ("supabase:abc", "is no address"),
    ("supabase:https://", "names no server"),
    ("supabase:https://abc.supabase.co/a%zz", "two hexadecimal digits"),
    ("a/b", "is no source"),
    ("..", "is no source"),
    ("", "is no source"),
  ])
  func whatIsNoSourceIsRefused(text: String, words: String) throws {
    do throws(Complaint) {
      _ = try Source(text, SupabaseEnvironment())
      Issue.record("accepted: \(text)")
    } catch {
      #expect(error.code == .usage)
      #expect(error.sentence.contains(words))
    }
  }

  @Test func aPasswordInAnAddressIsRefusedAndNotRepeated() throws {
    do throws(Complaint) {
      _ = try Source("supabase:https://me:hunter2@abc.supabase.co/b")
      Issue.record("accepted")
    } catch {
      #expect(error.sentence.contains("must not hold a name or a password"))
      #expect(!error.text.contains("hunter2"))
    }
  }
}
