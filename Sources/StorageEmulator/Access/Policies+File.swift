import Platform

extension Policies {
  /// What is wrong with a file of users and policies, for the person who wrote it.
  package struct Unreadable: Error, Sendable, CustomStringConvertible {
    /// A sentence.
    package let description: String
  }

  /// Reads the file's shape that the type describes.
  ///
  /// - Throws: `Unreadable`, saying what and where.
  package init(reading json: JSON) throws(Unreadable) {
    guard json.isObject else { throw Unreadable(description: "the file holds no JSON object") }
    self.init(
      users: try (json["users"]?.items ?? []).map { (user) throws(Unreadable) in
        guard let email = user["email"]?.text, let password = user["password"]?.text else {
          throw Unreadable(description: "a user needs email and password")
        }
        return User(
          email: email, password: password, id: user["id"]?.text,
          policies: try Self.policies(user["policies"], of: email))
      },
      anonymous: try Self.policies(json["anon"], of: "anon"),
      authenticated: try Self.policies(json["authenticated"], of: "authenticated"))
  }

  /// The buckets that the file asks for.
  static func buckets(in json: JSON) throws(Unreadable) -> [(String, Bucket.Settings)] {
    try (json["buckets"]?.items ?? []).map { (item) throws(Unreadable) in
      guard let name = item["name"]?.text, KeyRules.allowsNewBucket(name) else {
        throw Unreadable(description: "a bucket needs a name that the server allows")
      }
      var settings = Bucket.Settings()
      settings.isPublic = item["public"]?.flag ?? false
      settings.sizeLimit = item["file_size_limit"]?.whole.map { Int($0) }
      settings.allowedTypes = item["allowed_mime_types"]?.items?.compactMap(\.text)
      return (name, settings)
    }
  }

  private static func policies(_ json: JSON?, of holder: String) throws(Unreadable) -> [Policy] {
    try (json?.items ?? []).map { (item) throws(Unreadable) in
      guard let bucket = item["bucket"]?.text, let words = item["allow"]?.items else {
        throw Unreadable(description: "a policy of \(holder) needs bucket and allow")
      }
      var operations: Set<Operation> = []
      for word in words {
        guard let operation = word.text.flatMap(Operation.init(rawValue:)) else {
          throw Unreadable(
            description: "\(holder): allow takes select, insert, update and delete")
        }
        operations.insert(operation)
      }
      return Policy(
        bucket: bucket, prefix: ByteString(item["prefix"]?.text ?? ""), allow: operations,
        ownOnly: item["own"]?.flag ?? false, onBuckets: item["on"]?.text == "buckets")
    }
  }
}
