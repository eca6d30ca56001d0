import Platform

/// How an emulator behaves; fixed when it starts.
package struct Configuration: Sendable {
  /// Which of the real servers is imitated.
  package enum Profile: String, Sendable, CaseIterable {
    /// The hosted service: blobs in S3, a gateway in front.
    case hosted
    /// The developer's own server: blobs in files.
    case local
    /// A server of years ago: no `code` on 4xx answers, no list version 2, no info routes.
    case old
  }

  /// Whether listings lose entries as the real server's do.
  package enum Listing: String, Sendable, CaseIterable {
    /// With the entries that the real server loses at the borders of its batches and pages.
    case faithful
    /// Complete.
    case fixed
  }

  /// The server that is imitated.
  package var profile: Profile
  /// Faithful, unless a test asks for a server that is repaired.
  package var listing: Listing
  /// The folder that keeps everything over a restart; nil keeps it for the life of the process.
  package var data: String?
  /// Users and what they may do; without any, only the service role may.
  package var policies: Policies
  /// How long access tokens live, in seconds.
  package var tokenLife: Int64
  /// How long a used refresh token is still taken, in seconds.
  package var reuseInterval: Int64
  /// The largest object in bytes; a bucket's own limit may be lower.
  package var sizeLimit: Int

  package init(
    profile: Profile = .hosted, listing: Listing = .faithful, data: String? = nil,
    policies: Policies = Policies(), tokenLife: Int64 = 3600, reuseInterval: Int64 = 10,
    sizeLimit: Int = 5_000_000_000
  ) {
    self.profile = profile
    self.listing = listing
    self.data = data
    self.policies = policies
    self.tokenLife = tokenLife
    self.reuseInterval = reuseInterval
    self.sizeLimit = sizeLimit
  }
}
