import BucketStore
import FileCache
import Platform

/// Files that were opened when the kernel had to look their names up anew: it opens them again in
/// a moment, and then they are here, with the download that has begun.
final class ParkedFiles: Sendable {
  private struct Parked {
    let file: OpenFile
    let since: Instant
  }

  private let state = Locked([ObjectName: Parked]())
  private static let patience = Span.seconds(5)

  func park(_ file: OpenFile) {
    let parked = Parked(file: file, since: .now)
    let old = state.withLock { state -> [OpenFile] in
      var old = Self.takeExpired(&state)
      if let replaced = state.updateValue(parked, forKey: file.object) { old.append(replaced.file) }
      return old
    }
    for file in old { file.close() }
  }

  func take(_ object: ObjectName) -> OpenFile? {
    let (file, old) = state.withLock { state -> (OpenFile?, [OpenFile]) in
      if state.isEmpty { return (nil, []) }
      let old = Self.takeExpired(&state)
      return (state.removeValue(forKey: object)?.file, old)
    }
    for file in old { file.close() }
    return file
  }

  private static func takeExpired(_ state: inout [ObjectName: Parked]) -> [OpenFile] {
    let now = Instant.now
    let expired = state.filter { now.since($0.value.since) > patience }
    for object in expired.keys { state[object] = nil }
    return expired.values.map(\.file)
  }
}
