import BucketStore
import Glibc
import Platform

extension Service {
  /// The store that a plan names, and whose eyes it is seen with, as far as that is known.
  static func store(_ plan: MountPlan) throws(Complaint) -> (any BucketStore, user: String?) {
    switch plan.store {
    case .directory(let path):
      do throws(Errno) {
        return (try DirectoryStore(path), nil)
      } catch {
        throw Complaint(
          error == .noEntry ? .no : .refused, "the folder \(path) cannot be used: \(error)")
      }
    case .supabase(let url): return try supabase(plan, url)
    }
  }

  private static func supabase(_ plan: MountPlan, _ url: String) throws(Complaint)
    -> (any BucketStore, user: String?)
  {
    let address: SupabaseAddress
    do throws(StoreError) {
      address = try SupabaseAddress(url)
    } catch {
      throw Complaint(.usage, error.message)
    }
    var headers = plan.settings.headers.map { (name: $0.name, value: $0.value.revealed) }
    let named = Set(headers.map { $0.name.lowercased() })
    guard plan.key != nil || named.contains("apikey") || named.contains("authorization") else {
      throw Complaint(
        .usage, "there is no key for \(url)",
        hint: "set SUPABASE_KEY, or add key = ... to a profile in \(Places.configuration)")
    }
    if let token = plan.accessToken {
      headers.append((name: "Authorization", value: "Bearer \(token.revealed)"))
    }
    let client: HTTPClient
    do throws(Errno) {
      client = try HTTPClient(HTTPOptions(insecure: plan.settings.insecure))
    } catch {
      throw Complaint(.failed, "the network thread cannot be started: \(error)")
    }
    let key = plan.key?.revealed ?? ""
    let file = plan.dataDirectory + "/session.json"
    let session = SupabaseSession(
      address: address, key: key, file: access(file, F_OK) == 0 ? file : nil, transport: client,
      headers: headers)
    let store = SupabaseStore(
      address: address, key: key, session: session, transport: client, headers: headers)
    return (store, session.userID ?? plan.accessToken.map { AccessToken.user(of: $0) ?? "" })
  }
}
