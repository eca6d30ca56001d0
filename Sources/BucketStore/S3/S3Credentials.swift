/// What signs requests. It shows nothing of its secrets when it is printed.
package struct S3Credentials: Sendable, Equatable, CustomStringConvertible, CustomReflectable {
  /// Names the credentials; sent with every request.
  package let accessKey: String
  /// Signs; never sent.
  package let secretKey: String
  /// Of temporary credentials alone.
  package let sessionToken: String?

  package init(accessKey: String, secretKey: String, sessionToken: String? = nil) {
    self.accessKey = accessKey
    self.secretKey = secretKey
    self.sessionToken = sessionToken
  }

  package var description: String { "(credentials of \(accessKey))" }
  /// Keeps the secrets out of dumps.
  package var customMirror: Mirror { Mirror(self, children: ["accessKey": accessKey]) }
}
