package import Platform

/// Runs `body` on a number of threads at a time and waits for all.
///
/// - Returns: what each returned, in the order of their numbers.
package func inParallel<Result: Sendable>(
  _ count: Int, _ body: @escaping @Sendable (Int) -> Result
) throws(Errno) -> [Result] {
  let results = Locked([Int: Result]())
  var threads: [Thread] = []
  for number in 0..<count {
    threads.append(
      try Thread(name: "test-\(number)") {
        let result = body(number)
        results.withLock { $0[number] = result }
      })
  }
  for thread in threads { thread.join() }
  return results.withLock { results in (0..<count).compactMap { results[$0] } }
}

/// The time that `body` takes.
package func span<Failure: Error>(_ body: () throws(Failure) -> Void) throws(Failure) -> Span {
  let start = Instant.now
  try body()
  return Instant.now.since(start)
}
