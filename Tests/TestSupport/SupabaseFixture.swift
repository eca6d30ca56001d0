package import BucketStore
import Platform
package import StorageEmulator

/// An emulator on loopback, and a store that reads it over real HTTP with the service key.
package final class SupabaseFixture: StoreFixture {
  package let emulator: StorageEmulator
  package let address: SupabaseAddress
  package let client: HTTPClient
  package let store: any BucketStore
  package let allowsAnyKey = false

  package init(
    _ configuration: Configuration = Configuration(), pageSize: Int = 1000
  ) throws {
    emulator = try StorageEmulator(configuration)
    let port = try emulator.start()
    address = try SupabaseAddress("http://127.0.0.1:\(port)")
    client = try HTTPClient()
    let key = emulator.serviceKey
    store = SupabaseStore(
      address: address, key: key,
      session: SupabaseSession(address: address, key: key, file: nil, transport: client),
      transport: client, pageSize: pageSize)
  }

  deinit {
    client.shutdown()
    emulator.stop()
  }

  package func createBucket(_ name: String) { emulator.createBucket(name) }

  package func put(_ bucket: String, _ key: String, _ bytes: [UInt8]) throws {
    try emulator.put(bucket, ByteString(key), bytes)
  }

  package func remove(_ bucket: String, _ key: String) {
    emulator.remove(bucket, ByteString(key))
  }

  /// Another store of the same project: with another key, a session, or another page size.
  package func makeStore(
    key: String, sessionFile: String? = nil, headers: [(name: String, value: String)] = [],
    pageSize: Int = 1000
  ) -> SupabaseStore {
    SupabaseStore(
      address: address, key: key,
      session: SupabaseSession(
        address: address, key: key, file: sessionFile, transport: client),
      transport: client, headers: headers, pageSize: pageSize)
  }
}
