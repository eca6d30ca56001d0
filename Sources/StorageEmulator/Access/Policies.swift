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
  /// What a policy can allow, as in SQL.
  package enum Operation: String, Sendable, CaseIterable {
    case select, insert, update, delete
  }

  /// One right: some operations on some keys of a bucket.
  package struct Policy: Sendable {
    /// A bucket's name, or `*` for all.
    package var bucket: String
    /// How the keys begin; empty for all.
    package var prefix: ByteString
    /// What is allowed.
    package var operations: Set<Operation>
    /// Whether the caller must have written the object.
    package var ownOnly: Bool
    /// Whether it is about the rows of buckets and not about objects.
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

  /// Someone who can sign in with a password.
  package struct User: Sendable {
    /// The subject of the user's tokens, a UUID.
    package var id: String
    /// Compared without regard to case.
    package var email: String
    /// In the clear; these are users of a test.
    package var password: String
    /// What this user may do.
    package var policies: [Policy]

    /// - Parameter id: a UUID; nil takes one that follows from the address.
    package init(email: String, password: String, id: String? = nil, policies: [Policy]) {
      self.id = id ?? Identifier.uuid(for: email)
      self.email = email
      self.password = password
      self.policies = policies
    }
  }

  /// Who can sign in.
  package var users: [User]
  /// What callers without a user may do.
  package var anonymous: [Policy]
  /// What every signed-in user may do besides.
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
