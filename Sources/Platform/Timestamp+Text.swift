import Glibc

extension Timestamp {
  /// The moment by ISO 8601 in UTC, cut to the second: `2026-11-30T08:00:00Z`.
  package var text: String {
    var seconds = time_t(timespec.tv_sec)
    var parts = tm()
    guard gmtime_r(&seconds, &parts) != nil else { return "\(seconds)" }
    var buffer = [CChar](repeating: 0, count: 64)
    let count = strftime(&buffer, buffer.count, "%Y-%m-%dT%H:%M:%SZ", &parts)
    return String(decoding: buffer.prefix(count).map(UInt8.init(bitPattern:)), as: UTF8.self)
  }
}
