/// What `mount --json` says once the mount can be used.
struct MountReport: Codable, Equatable, Sendable {
  let mountpoint: String
  /// The process that serves it.
  let pid: Int32
  let source: String
}
