import BucketStore
import PendingQueue
import Platform

/// A store and its way to it: the network's state around a store that asks the network.
struct StoreParts: Sendable {
  /// The store behind the breaker: what everybody asks.
  let store: any WritableStore
  /// The store itself: what probes ask.
  let inner: any WritableStore
  let network: Network
  /// Whose eyes it is seen with; nil where no user is signed in.
  let user: String?
  /// Whose session it is at this moment.
  private let currentUser: @Sendable () -> String?
  /// Tells when somebody has signed in anew; nil where no user is.
  private let sessionWatch: SessionWatch?
  /// nil where the store is on this device.
  private let client: HTTPClient?
  /// Whether the person was told how the store was found; from then on a loss is news.
  private let hasGreeted = Locked(false)

  /// Makes the store that a plan names. Nothing is asked of it yet.
  init(_ plan: MountPlan) throws(Complaint) {
    network = Network()
    switch plan.store {
    case .directory(let path):
      do throws(Errno) {
        inner = try DirectoryStore(path)
      } catch {
        throw Complaint(
          error == .noEntry ? .no : .refused, "the folder \(path) cannot be used: \(error)")
      }
      (user, client) = (nil, nil)
      currentUser = { nil }
      sessionWatch = nil
    case .s3(let s3):
      let credentials = s3.provider
      (inner, client) = try Self.s3(s3, credentials, plan.settings, network)
      // The files that hold the credentials may come to hold another's.
      currentUser = { credentials().map(S3Plan.user) }
      user = currentUser()
      sessionWatch = nil
    case .supabase(let url):
      (inner, currentUser, client) = try Self.supabase(plan, url, network)
      user = currentUser()
      sessionWatch = SessionWatch(plan.sessionFile)
    }
    store = ConnectedWritableStore(inner, network: network)
  }

  /// Begins to probe the store while it is not reached, and to watch the links.
  func start(bucket: ByteString?) throws(Complaint) {
    let client = client
    network.onLinkChange { client?.distrustConnections() }
    network.onChange { [hasGreeted] change in
      let line = "the network is \(change.to.rawValue): \(change.reason)"
      let isNews = change.to == .offline && hasGreeted.withLock { $0 }
      if isNews { Log.warning(line) } else { Log.info(line) }
    }
    let parts = self
    do throws(Errno) {
      try network.start { (call) throws(StoreError) in try parts.probe(bucket, call) }
    } catch {
      throw Complaint(.failed, "the network cannot be watched: \(error)")
    }
  }

  /// The person was told how the store was found.
  func noteGreeting() { hasGreeted.withLock { $0 = true } }

  /// Whether uploads may run now. Never waits.
  ///
  /// A session that waits for its refresh is no obstacle: the next upload brings the refresh about.
  var gate: UploadGate {
    switch network.current {
    case .offline: return .offline
    case .disabled: return .disabled
    case .online, .restoring: break
    }
    if store.session == .signedOut {
      // What was written when nobody was signed in is not the next one's to send.
      guard user != nil else { return .signedOut }
      // The next upload finds out whether the new session is good.
      return sessionWatch?.hasChanged() ?? false ? .open : .signedOut
    }
    sessionWatch?.forget()
    // Who signed in only after the mount began must not send what is not theirs.
    return currentUser() == user ? .open : .signedOut
  }

  /// Asks the store something small.
  func probe(_ bucket: ByteString?, _ call: Call) throws(StoreError) {
    if let bucket {
      _ = try inner.bucketExists(bucket, call)
    } else {
      _ = try inner.buckets(call)
    }
  }

  /// Ends probes and transfers; after the last call.
  func stop() {
    network.stop()
    client?.shutdown()
  }

  private static func s3(
    _ s3: S3Plan, _ credentials: @escaping @Sendable () -> S3Credentials?, _ settings: Settings,
    _ network: Network
  ) throws(Complaint) -> (any WritableStore, HTTPClient) {
    let options = HTTPOptions(insecure: settings.insecure)
    do throws(StoreError) {
      try options.check(address: s3.text)
    } catch {
      throw Complaint(.usage, error.message)
    }
    let client = try client(options)
    let store = S3Store(
      address: s3.address, credentials: credentials,
      transport: ConnectedTransport(client, network: network),
      headers: settings.headers.map { (name: $0.name, value: $0.value.revealed) })
    return (store, client)
  }

  private static func client(_ options: HTTPOptions) throws(Complaint) -> HTTPClient {
    do throws(Errno) {
      return try HTTPClient(options)
    } catch {
      throw Complaint(.failed, "the network thread cannot be started: \(error)")
    }
  }

  private static func supabase(_ plan: MountPlan, _ url: String, _ network: Network)
    throws(Complaint) -> (any WritableStore, @Sendable () -> String?, HTTPClient)
  {
    let file = try plan.checkedSessionFile()
    let address: SupabaseAddress
    let options = HTTPOptions(insecure: plan.settings.insecure)
    do throws(StoreError) {
      address = try SupabaseAddress(url)
      try options.check(address: address.storage)
    } catch {
      throw Complaint(.usage, error.message)
    }
    var headers = plan.settings.headers.map { (name: $0.name, value: $0.value.revealed) }
    let named = Set(headers.map { $0.name.lowercased() })
    guard plan.key != nil || named.contains("apikey") || named.contains("authorization") else {
      if let other = plan.otherProject {
        throw Complaint(
          .usage, "there is no key for \(url): SUPABASE_KEY is for SUPABASE_URL, which is \(other)",
          hint: "set SUPABASE_URL to the same project, or unset it")
      }
      throw Complaint(
        .usage, "there is no key for \(url)",
        hint: "set SUPABASE_KEY, or add key = ... to a profile in \(Places.configuration)")
    }
    if let token = plan.accessToken {
      headers.append((name: "Authorization", value: "Bearer \(token.revealed)"))
    }
    let client = try client(options)
    let transport = ConnectedTransport(client, network: network)
    let key = plan.key?.revealed ?? ""
    let session = SupabaseSession(
      address: address, key: key, file: file, transport: transport, headers: headers)
    let store = SupabaseStore(
      address: address, key: key, session: session, transport: transport, headers: headers)
    let fixed = plan.accessToken.map { AccessToken.user(of: $0) ?? "" }
    return (store, { session.userID ?? fixed }, client)
  }
}
