import BucketStore
import Foundation
import Platform
import StorageEmulator
import TestSupport
import Testing

/// What this store wrote, read by storage3, the official Python client.
@Suite struct OfficialClientTests {
  /// Where `scripts/acceptance` keeps the client.
  private static let python = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().appending(path: ".venv/bin/python").path

  private static let script = """
    import hashlib, sys
    from storage3 import SyncStorageClient
    url, key, name, digest = sys.argv[1:]
    client = SyncStorageClient(url, {"apikey": key, "Authorization": "Bearer " + key})
    bucket = client.from_("docs")
    assert hashlib.sha256(bucket.download(name)).hexdigest() == digest
    info = bucket.info(name)
    assert info["content_type"] == "image/jpeg", info
    assert info["metadata"] == {"mtime": "1.5", "sha256": "ab"}, info
    """

  @Test(
    .enabled(
      if: FileManager.default.isExecutableFile(atPath: python), "scripts/acceptance installs it"),
    arguments: [0, 5, 7 << 20])
  func theOfficialClientReadsWhatWasWritten(size: Int) throws {
    let fixture = try WritingFixture()
    let scratch = try Scratch()
    try scratch.file("read.py", Array(Self.script.utf8))
    let bytes = mixedBytes(size)
    let name: ByteString = "Sch=C3=B6ne Gr=C3=BC=C3=9Fe/a b+c;d.jpg"
    let request = fixture.request(name, size)
    if size > 6 << 20 {
      let token = try fixture.store.beginUpload(request, Call())
      try fixture.store.continueUpload(
        token, request, from: BytesSource(bytes), progress: { _ in }, Call())
    } else {
      try fixture.store.put(request, from: BytesSource(bytes), progress: { _ in }, Call())
    }
    let reader = try Subprocess(
      [
        Self.python, scratch.path("read.py"), fixture.supabase.address.storage + "/",
        fixture.emulator.serviceKey, name.description, Digest.hex(.sha256, of: bytes),
      ], in: scratch.path)
    #expect(reader.wait() == 0)
  }
}
