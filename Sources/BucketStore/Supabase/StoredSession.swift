import FoundationEssentials
import Glibc
package import Platform

/// A user's session as it is kept on the device: `session.json`, mode 0600.
///
/// Holds `access_token`, `refresh_token`, `expires_at` (seconds since 1970 by this device's clock)
/// and `user_id`. Replaced whole; other members are not kept.
package struct StoredSession: Sendable, Equatable {
  /// Sent with every call; a credential.
  package var accessToken: String
  /// Good for one refresh, which gives the next one; a credential.
  package var refreshToken: String
  /// When the access token ends, by this device's clock.
  package var expires: Timestamp
  /// The server's id of the user.
  package var userID: String

  package init(accessToken: String, refreshToken: String, expires: Timestamp, userID: String) {
    self.accessToken = accessToken
    self.refreshToken = refreshToken
    self.expires = expires
    self.userID = userID
  }

  /// Why a session file is of no use, in a sentence.
  package struct Problem: Error, Sendable {
    /// For people; holds no credential.
    package let sentence: String
  }

  /// Reads a session file.
  ///
  /// - Throws: `Problem` when it is missing, not this user's own, readable by others, or damaged.
  package init(file: String) throws(Problem) {
    let status: stat
    let bytes: [UInt8]
    do throws(Errno) {
      status = try File(file, O_RDONLY | O_NOFOLLOW).status()
      bytes = try File.contents(of: file, limit: 1 << 20)
    } catch {
      throw Problem(
        sentence: error == .noEntry
          ? "nobody is signed in: sign in first" : "\(file): \(error)")
    }
    guard status.st_uid == geteuid() else {
      throw Problem(sentence: "\(file) belongs to another user")
    }
    guard status.st_mode & 0o077 == 0 else {
      throw Problem(sentence: "\(file) is open to other users: chmod 600 it")
    }
    let members: Members
    do {
      members = try JSONDecoder().decode(Members.self, from: Data(bytes))
    } catch {
      throw Problem(sentence: "\(file) holds no session: sign in again")
    }
    accessToken = members.accessToken
    refreshToken = members.refreshToken
    expires = Timestamp(seconds: members.expiresAt)
    userID = members.userID
  }

  /// Replaces a session file, durably.
  package func save(_ file: String) throws(Errno) {
    let members = Members(
      accessToken: accessToken, refreshToken: refreshToken,
      expiresAt: expires.nanoseconds / 1_000_000_000, userID: userID)
    let bytes: Data
    do {
      bytes = try JSONEncoder().encode(members)
    } catch {
      throw .invalid
    }
    try File.replace(file, with: Array(bytes))
  }

  private struct Members: Codable {
    var accessToken: String
    var refreshToken: String
    var expiresAt: Int64
    var userID: String

    enum CodingKeys: String, CodingKey {
      case accessToken = "access_token"
      case refreshToken = "refresh_token"
      case expiresAt = "expires_at"
      case userID = "user_id"
    }
  }
}
