import BucketStore
import Foundation
import Platform
import StorageEmulator
import TestSupport

/// An emulator with a bucket `docs`, a store that writes to it, and what came over the wire.
struct WritingFixture {
  let supabase: SupabaseFixture
  let store: SupabaseStore

  static let ann = Policies.User(
    email: "ann@example.org", password: "a",
    policies: [
      Policies.Policy(
        bucket: "docs", prefix: "", allow: [.select, .insert, .update, .delete])
    ])

  init(_ configuration: Configuration = Configuration()) throws {
    supabase = try SupabaseFixture(configuration)
    supabase.createBucket("docs")
    store = supabase.makeStore(key: supabase.emulator.serviceKey)
  }

  var emulator: StorageEmulator { supabase.emulator }

  /// The requests that came, sign-in apart.
  var requests: [RequestLog.Entry] {
    emulator.requests.entries().filter { $0.route != "auth" }
  }

  func object(_ key: ByteString) -> ObjectName { ObjectName(bucket: "docs", key: key) }

  func request(
    _ key: ByteString, _ size: Int, _ condition: PutRequest.Condition = .none,
    type: String = "image/jpeg", metadata: [String: String] = ["mtime": "1.5", "sha256": "ab"]
  ) -> PutRequest {
    PutRequest(
      object: object(key), size: Int64(size), contentType: type, userMetadata: metadata,
      condition: condition)
  }

  func put(
    _ key: ByteString, _ bytes: [UInt8], _ condition: PutRequest.Condition = .none
  ) throws(StoreError) {
    try store.put(
      request(key, bytes.count, condition), from: BytesSource(bytes), progress: { _ in }, Call())
  }

  /// A store of the user Ann, signed in anew.
  func signedIn(_ scratch: Scratch) throws -> SupabaseStore {
    let file = scratch.path("session.json")
    let key = emulator.publishableKey
    let session = SupabaseSession(
      address: supabase.address, key: key, file: file, transport: supabase.client)
    try session.signIn(email: Self.ann.email, password: "a", Call())
    return supabase.makeStore(key: key, sessionFile: file)
  }
}

/// Bytes that differ from each other over a long way.
func mixedBytes(_ count: Int, seed: Int = 1) -> [UInt8] {
  var state = UInt64(seed) &* 0x9E37_79B9_7F4A_7C15
  var bytes = [UInt8](repeating: 0, count: count)
  for index in stride(from: 0, to: count, by: 8) {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    bytes[index] = UInt8(truncatingIfNeeded: state >> 33)
  }
  return bytes
}
