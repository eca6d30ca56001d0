import BucketStore
import Testing

@Suite struct SupabaseAddressTests {
  @Test(arguments: [
    ("https://ref.supabase.co", "https://ref.supabase.co"),
    ("https://ref.supabase.co/", "https://ref.supabase.co"),
    ("https://ref.supabase.co/storage/v1", "https://ref.supabase.co"),
    ("https://ref.supabase.co/storage/v1//", "https://ref.supabase.co"),
    ("http://127.0.0.1:54321", "http://127.0.0.1:54321"),
    ("HTTP://[::1]:54321/storage/v1/", "http://[::1]:54321"),
    ("https://host/proxied/storage/v1", "https://host/proxied"),
  ])
  func storageAndSignInLieBelowTheProject(text: String, base: String) throws {
    let address = try SupabaseAddress(text)
    #expect(address.storage == base + "/storage/v1")
    #expect(address.auth == base + "/auth/v1")
  }

  @Test func directStorageSignsInAtTheProject() throws {
    let address = try SupabaseAddress("https://ref.storage.supabase.co/storage/v1")
    #expect(address.storage == "https://ref.storage.supabase.co/storage/v1")
    #expect(address.auth == "https://ref.supabase.co/auth/v1")
  }

  @Test(arguments: [
    "", "ref.supabase.co", "ftp://host", "https://", "https:///storage/v1", "https://h?x=1",
    "https://h#x", "https://user@h", "https://h/a b", "https://h/\u{e9}",
  ])
  func whatIsNoAddressIsRefusedWithASentence(text: String) {
    #expect(kind { () throws(StoreError) in _ = try SupabaseAddress(text) } == .unsupported)
  }
}
