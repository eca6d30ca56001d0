import BucketStore
import Glibc
import Platform
import SQLite

/// What the housekeeping thread does every few seconds.
extension FileCache {
  /// One round: evict, write what lags behind, and make bytes durable.
  ///
  /// - Parameter isLast: the program ends, and must not wait for a busy disk.
  func keepHouse(isLast: Bool = false) {
    if !isLast {
      directory.restore()
      renewIndex()
    }
    evict()
    saveParts()
    flush(isLast: isLast)
  }

  /// Has the index made anew where its file is gone, or written where that is possible again.
  private func renewIndex() {
    guard database.isInMemory else {
      state.withLock { $0.indexPause = Self.indexPauses.lowerBound }
      return database.checkFile()
    }
    guard directory.refusal == nil, directory.isInPlace else { return }
    let isDue = state.withLock { state in Instant.now.since(state.indexed) >= state.indexPause }
    guard isDue, directory.hasRoom else { return }
    state.withLock { state in
      state.indexed = .now
      state.indexPause = min(state.indexPause + state.indexPause, Self.indexPauses.upperBound)
    }
    let opener = opener
    database.renew { (memory) throws(DatabaseError) in try opener.keep(&memory) }
  }

  /// How long to wait after an attempt to write an index that is in memory, from the first on.
  static let indexPauses = Span.seconds(20)...Span.seconds(600)

  /// Removes the least recently used copies until the cache is a tenth below its bound.
  ///
  /// Files that are open, pinned, or were used within the grace time stay.
  func evict() {
    guard let limit else { return }
    let excess = state.withLock { $0.bytes > limit ? $0.bytes &- (limit - limit / 10) : 0 }
    if excess > 0 { evict(excess, grace: options.grace) }
  }

  /// Gives up the least recently used copies so that this device has room for something else.
  ///
  /// Copies that are open or pinned stay. Returns once the files are gone; waits for the disk.
  /// - Returns: how many bytes were freed; fewer than asked, or none, when nothing else can go.
  package func makeRoom(_ bytes: Int64) -> Int64 {
    let freed = evict(bytes, grace: .zero)
    guard freed > 0 else { return 0 }
    do throws(DatabaseError) {
      // Files go on the writing thread, in order.
      try database.write { (_) throws(DatabaseError) in }
    } catch {
      report(error)
    }
    return freed
  }

  private enum Victim {
    case copy(ObjectName, Copy)
    case partial(ObjectName, Partial)
  }

  /// - Returns: how many bytes the removed files have.
  @discardableResult
  private func evict(_ excess: Int64, grace: Span) -> Int64 {
    let now = Timestamp.now
    let (victims, freed) = state.withLock { state -> ([Victim], Int64) in
      var candidates: [(used: Timestamp, bytes: Int64, victim: Victim)] = []
      for (object, copy) in state.copies
      where !copy.isPinned && state.opens[object] == nil && now.since(copy.used) >= grace {
        candidates.append((copy.used, copy.facts.size, .copy(object, copy)))
      }
      for (object, partial) in state.partials where now.since(partial.used) >= grace {
        candidates.append((partial.used, partial.present.count, .partial(object, partial)))
      }
      candidates.sort { $0.used < $1.used }
      var freed: Int64 = 0
      let victims = candidates.prefix { candidate in
        defer { freed &+= candidate.bytes }
        return freed < excess
      }
      return (victims.map(\.victim), victims.reduce(0) { $0 &+ $1.bytes })
    }
    for victim in victims {
      switch victim {
      case .copy(let object, let copy): forget(object, copy)
      case .partial(let object, let partial): forget(object, partial)
      }
    }
    return freed
  }

  /// Writes down which parts of large objects are there, so that a crash costs no more than the
  /// last few seconds of them.
  private func saveParts() {
    let downloads = state.withLock { Array($0.downloads.values) }
    for download in downloads {
      let partial = download.state.withLock { state -> Partial? in
        guard case .open = state.phase else { return nil }
        return state.partial(over: options.partSize)
      }
      if let partial { save(partial, of: download.object) }
    }
  }

  /// Writes the times of use and confirmation, and marks what is durable now.
  private func flush(isLast: Bool) {
    makeDurable(isLast: isLast)
    let touched = state.withLock { state -> [(ObjectName, Copy)] in
      defer { state.touched = [] }
      return state.touched.compactMap { object in state.copies[object].map { (object, $0) } }
    }
    guard !touched.isEmpty else { return }
    database.enqueue { (connection) throws(DatabaseError) in
      for (object, copy) in touched {
        try CopyRows.touch(copy, of: object, in: &connection)
      }
    } done: { [self] error in
      if let error { report(error) }
    }
  }

  /// Makes what is new durable, file by file, the smallest first, away from every reader: a
  /// download never waits for the disk.
  ///
  /// Not by syncfs(2), which would wait for what all other programs have written too. Whoever
  /// closes the cache waits for one file at most, and then syncs those that are small, for as long
  /// as `closingTime` lets it. What is left out is compared with its checksum after the machine has
  /// started anew, or fetched again.
  private func makeDurable(isLast: Bool) {
    let deadline = isLast ? Instant.now + options.closingTime : nil
    let isDue = state.withLock { state -> Bool in
      guard isLast || Instant.now.since(state.synced) >= Self.syncPause else { return false }
      state.synced = .now
      return true
    }
    guard isDue else { return }
    for file in volatile().sorted(by: { $0.bytes < $1.bytes }) {
      if let deadline {
        guard Instant.now < deadline, file.bytes <= Self.mostToSync else { return }
      } else if keeper.isStopping {
        return
      }
      do throws(Errno) {
        try directory.root.open(file.path, O_RDONLY | O_NONBLOCK).sync()
      } catch {
        // What is gone is a miss, and needs no place on the disk.
        if error != .noEntry {
          Log.warning("cannot sync \(directory.path)/\(file.path): \(error)")
        }
        continue
      }
      noteDurable(file)
    }
  }

  /// A file of the cache that may not be on the disk yet.
  private enum Volatile {
    case copy(ObjectName, Copy)
    case partial(ObjectName, Partial)

    var path: ByteString {
      switch self {
      case .copy(_, let copy): copy.path
      case .partial(_, let partial): partial.path
      }
    }

    var bytes: Int64 {
      switch self {
      case .copy(_, let copy): copy.facts.size
      case .partial(_, let partial): partial.present.count
      }
    }
  }

  private func volatile() -> [Volatile] {
    state.withLock { state in
      var files: [Volatile] = []
      for object in state.fresh {
        if let copy = state.copies[object] { files.append(.copy(object, copy)) }
      }
      for (object, partial) in state.partials where !partial.isDurable {
        files.append(.partial(object, partial))
      }
      return files
    }
  }

  private func noteDurable(_ file: Volatile) {
    switch file {
    case .copy(let object, let copy):
      state.withLock { state in
        guard state.copies[object]?.content == copy.content else { return }
        state.copies[object]?.isDurable = true
        state.fresh.remove(object)
        state.touched.insert(object)
      }
    case .partial(let object, let partial):
      var durable = partial
      durable.isDurable = true
      let isCurrent = state.withLock { state -> Bool in
        guard state.partials[object] == partial else { return false }
        state.partials[object] = durable
        return true
      }
      if isCurrent { save(durable, of: object) }
    }
  }

  private static let syncPause = Span.seconds(30)
  /// A larger file would take too long by itself where the program ends.
  private static let mostToSync: Int64 = 64 << 20

  /// Takes up the files that a crash left without a row, and removes those that are no copies.
  func sweep(isStopped: () -> Bool) {
    let finder = CopyFinder(directory)
    let known = state.withLock { state in
      Dictionary(state.copies.values.map { ($0.path, $0.stamp) }) { first, _ in first }
    }
    for path in finder.files() {
      if isStopped() { return }
      if let stamp = known[path], finder.stamp(of: path) == stamp { continue }
      database.enqueue { [self] (_) throws(DatabaseError) in
        guard let (object, found) = finder.identify(path) else {
          let isKnown = state.withLock { state in
            state.copies.values.contains { $0.path == path }
          }
          if !isKnown { remove(path) }
          return
        }
        let old = state.withLock { $0.copies[object] }
        // A row that is older than the file at its place: the crash came between the two.
        if old.map({ $0.path == path && $0.facts != found.facts }) ?? true {
          takeUp(found, of: object, for: old)
        } else if old?.path != path {
          remove(path)
        }
      } done: { [self] error in
        if let error { report(error) }
      }
    }
  }
}
