package import Platform

/// Every request that came, in order, for tests to read; the last 50,000 at least are kept.
package final class RequestLog: Sendable {
  /// One request as it was received and answered.
  package struct Entry: Sendable {
    /// Counts from 1 and is never given twice.
    package let number: Int
    /// When its head had come, by the machine's clock.
    package let at: Timestamp
    /// As sent.
    package let method: String
    /// The raw path with its query, percent signs as sent.
    package let path: String
    /// The group of calls it belongs to, named as in `Fault`.
    package let route: String
    /// The bucket in its path, decoded; nil when there is none.
    package let bucket: String?
    /// The key in its path, decoded once; nil when there is none.
    package let key: ByteString?
    /// As sent.
    package let headers: Headers
    /// The HTTP status that was sent; 0 while there is none, and when the answer was withheld.
    package var status = 0
    /// Bytes of the request's body that were read.
    package var bytesIn = 0
    /// Bytes of the answer's body that were sent.
    package var bytesOut = 0
    /// Whether a fault befell it.
    package var isFaulty = false

    var json: JSON {
      [
        "n": .integer(Int64(number)), "at": .string(TimeText.iso(at)), "method": .string(method),
        "path": .string(path), "route": .string(route), "bucket": .text(bucket),
        "key": .text(key?.text), "status": .integer(Int64(status)),
        "headers": .object(headers.fields.map { JSON.Member($0.name, .string($0.value)) }),
        "bytes_in": .integer(Int64(bytesIn)), "bytes_out": .integer(Int64(bytesOut)),
        "fault": .bool(isFaulty),
      ]
    }
  }

  private struct State {
    var entries: [Entry] = []
    var count = 0
    /// The number of the first entry that is kept.
    var first = 1
  }

  private let state = Locked(State())

  /// - Returns: the number of the new entry.
  func begin(_ request: Request, _ route: Route) -> Int {
    state.withLock { state in
      state.count += 1
      if state.entries.count == 60_000 {
        state.entries.removeFirst(10_000)
        state.first += 10_000
      }
      state.entries.append(
        Entry(
          number: state.count, at: .now, method: request.method, path: request.target,
          route: route.name.rawValue, bucket: route.bucket, key: route.key,
          headers: request.headers))
      return state.count
    }
  }

  func update(_ number: Int, _ change: (inout Entry) -> Void) {
    state.withLock { state in
      guard number >= state.first, number - state.first < state.entries.count else { return }
      change(&state.entries[number - state.first])
    }
  }

  /// The entries whose number is greater than `number`.
  package func entries(since number: Int = 0) -> [Entry] {
    state.withLock { state in
      Array(state.entries.dropFirst(max(0, number + 1 - state.first)))
    }
  }

  /// Empties the log; numbers go on.
  package func clear() {
    state.withLock { state in
      state.entries = []
      state.first = state.count + 1
    }
  }
}
