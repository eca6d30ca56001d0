package import Platform

/// What a caller may do: the row-level security of the emulator.
///
/// Read from a JSON file of this shape; `docs/emulator-users.json` is a sample.
///
///     {
///       "users": [{"email": "ann@example.org", "password": "secret", "id": "<uuid, optional>",
///                  "policies": [POLICY...]}],
///       "authenticated": [POLICY...],   every signed-in user has these too
///       "anon": [POLICY...],            callers with the anon key and callers without a token
///       "buckets": [{"name": "photos", "public": false, "file_size_limit": 1000000,
///                    "allowed_mime_types": ["image/*"]}]
///     }
///
/// A POLICY is `{"bucket": "photos", "prefix": "ann/", "allow": ["select", "insert", "update",
/// "delete"], "own": true, "on": "objects"}`: `bucket` may be `*`, `prefix` (none) matches every
/// key, `own` (false) asks that the caller wrote the object, and `on` (objects) may be `buckets`,
/// for the rows of the buckets themselves, which ordinary users cannot see otherwise. Buckets
/// named here are made when they are missing.
package struct Policies: Sendable {
  package enum Operation: String, Sendable, CaseIterable {
    case select, insert, update, delete
  }

  package struct Policy: Sendable {
    package var bucket: String
    package var prefix: ByteString
    package var operations: Set<Operation>
    package var ownOnly: Bool
    package var onBuckets: Bool

    package init(
      bucket: String = "*", prefix: ByteString = "",
      allow operations: Set<Operation> = Set(Operation.allCases), ownOnly: Bool = false,
      onBuckets: Bool = false
    ) {
      self.bucket = bucket
      self.prefix = prefix
      self.operations = operations
      self.ownOnly = ownOnly
      self.onBuckets = onBuckets
    }
  }

  package struct User: Sendable {
    package var id: String
    package var email: String
    package var password: String
    package var policies: [Policy]

    /// - Parameter id: a UUID; nil takes one that follows from the address.
    package init(email: String, password: String, id: String? = nil, policies: [Policy]) {
      self.id = id ?? Identifier.uuid(for: email)
      self.email = email
      self.password = password
      self.policies = policies
    }
  }

  package var users: [User]
  package var anonymous: [Policy]
  package var authenticated: [Policy]

  package init(users: [User] = [], anonymous: [Policy] = [], authenticated: [Policy] = []) {
    self.users = users
    self.anonymous = anonymous
    self.authenticated = authenticated
  }

  /// The rights of one caller.
  func access(of caller: Caller) -> Access {
    switch caller.role {
    case "service_role":
      return Access(bypasses: true, policies: [], subject: caller.subject)
    case "authenticated":
      let own = users.first { $0.id == caller.subject }?.policies ?? []
      return Access(bypasses: false, policies: own + authenticated, subject: caller.subject)
    case "anon":
      return Access(bypasses: false, policies: anonymous, subject: caller.subject)
    default:
      return Access(bypasses: false, policies: [], subject: caller.subject)
    }
  }
}

/// Who makes a request, after its token was looked at.
struct Caller: Sendable {
  let role: String
  let subject: String?
  /// False when a lenient route dropped a missing, malformed or expired token.
  let isAuthenticated: Bool

  static let nobody = Caller(role: "anon", subject: nil, isAuthenticated: false)
}

/// The rights of one caller, asked object by object.
struct Access: Sendable {
  let bypasses: Bool
  let policies: [Policies.Policy]
  let subject: String?

  /// - Parameter owner: who wrote the object; for an insert that is the caller.
  func allows(
    _ operation: Policies.Operation, bucket: String, key: ByteString, owner: String?
  ) -> Bool {
    bypasses
      || policies.contains { policy in
        !policy.onBuckets && policy.operations.contains(operation)
          && (policy.bucket == "*" || policy.bucket == bucket) && key.hasPrefix(policy.prefix)
          && (!policy.ownOnly || (subject != nil && owner == subject))
      }
  }

  func allows(_ operation: Policies.Operation, bucketRow name: String) -> Bool {
    bypasses
      || policies.contains { policy in
        policy.onBuckets && policy.operations.contains(operation)
          && (policy.bucket == "*" || policy.bucket == name)
      }
  }
}
