import BucketStore
import Platform

/// A flat listing of a whole subtree, cut into the listings of its folders as it comes.
///
/// Nobody runs it: whoever needs a folder that lies ahead fetches the next page, so it stops by
/// itself when the walk stops. One fetches at a time, the others wait for what he finds.
final class FlatWalk: Sendable {
  /// The topmost folder; keys outside it are not asked for.
  let root: FolderName

  private struct State {
    var cursor: ListCursor?
    var isFetching = false
    var isFinished = false
    /// Whether the store refuses a page: none is asked for until the walk is given up.
    var isRefused = false
    /// The folders that the last key lies in, the topmost first.
    var open: [Frame]
    var pages = 0
    var lastKey = ByteString()
    /// The folders that the last page completed.
    var passed: Set<FolderName> = []
    var used: Instant
    var cost = Span.zero
  }

  /// A folder of which more may come.
  private struct Frame {
    var builder: ListingBuilder
    let startedAt: Timestamp
    /// What the walk had cost when the folder began.
    let costBefore: Span
  }

  /// A folder that is complete.
  struct Finished: Sendable {
    let builder: ListingBuilder
    let fetchedAt: Timestamp
    let cost: Span
  }

  enum Turn: Sendable {
    /// Ask for the page after this cursor, then call `take` or `giveUp`.
    case fetch(ListCursor?)
    /// Another one has brought a page.
    case progressed
    case finished
    case cancelled
  }

  private let names: KeyNames
  let startedAt: Timestamp
  private let state: Locked<State>

  init(root: FolderName, names: KeyNames) {
    self.root = root
    self.names = names
    let now = Timestamp.now
    startedAt = now
    let frame = Frame(
      builder: ListingBuilder(root, names: names), startedAt: now, costBefore: .zero)
    state = Locked(State(open: [frame], used: .now))
  }

  /// Whether the last page has been taken.
  var isFinished: Bool { state.withLock { $0.isFinished } }

  /// What its pages took together.
  var cost: Span { state.withLock { $0.cost } }

  /// Whether nobody has asked for a page since a while.
  func isIdle(_ pause: Span, at now: Instant) -> Bool {
    state.withLock { !$0.isFetching && now.since($0.used) > pause }
  }

  /// Whether more of a folder may come.
  func isAhead(_ folder: FolderName) -> Bool {
    let end = folder.prefix.isEmpty ? nil : folder.prefix.dropLast() + "0"
    return state.withLock { state in
      !state.isFinished && !state.isRefused && (end.map { state.lastKey < $0 } ?? true)
    }
  }

  /// Whether the last page completed a folder.
  func hasJustPassed(_ folder: FolderName) -> Bool {
    state.withLock { $0.passed.contains(folder) }
  }

  /// Waits until a page is to be fetched by the caller, or was fetched by another.
  func takeTurn(_ cancellation: Cancellation) -> Turn {
    let seen = state.withLock { $0.pages }
    return state.wait(cancellation) { state -> Turn? in
      if state.isFinished || state.isRefused { return .finished }
      if state.pages != seen { return .progressed }
      if state.isFetching { return nil }
      state.isFetching = true
      return .fetch(state.cursor)
    } ?? .cancelled
  }

  /// The page could not be had; the next one may try, unless the store refuses it.
  func giveUp(isRefused: Bool) {
    state.withLock { state in
      state.isFetching = false
      state.isRefused = isRefused
      state.used = .now
    }
    state.wakeAll()
  }

  /// Cuts a page into folders.
  ///
  /// The turn stays the caller's until `passOn`, so that who waits finds them kept.
  /// - Parameter asked: when the store was asked for the page; what was changed there since then may
  ///   be missing in it.
  /// - Returns: the folders that are complete, each after those in it.
  func take(_ page: ListPage, asked: Timestamp, cost: Span) -> [Finished] {
    let names = self.names
    return state.withLock { state in
      let costBefore = state.cost
      state.cursor = page.next
      state.cost = state.cost + cost
      var finished: [Finished] = []
      for object in page.objects {
        Self.close(&state, until: object.key, &finished)
        Self.add(object, to: &state, names, asked: asked, costBefore: costBefore)
      }
      if page.next == nil {
        Self.close(&state, until: nil, &finished)
        state.isFinished = true
      }
      state.lastKey = page.objects.last?.key ?? state.lastKey
      state.passed = Set(finished.map(\.builder.folder))
      return finished
    }
  }

  /// Lets the others see what the page brought.
  func passOn() {
    state.withLock { state in
      state.isFetching = false
      state.pages += 1
      state.used = .now
    }
    state.wakeAll()
  }

  /// Completes the folders that a key does not lie in; all of them without a key.
  private static func close(
    _ state: inout State, until key: ByteString?, _ finished: inout [Finished]
  ) {
    while let frame = state.open.last {
      if let key, key.hasPrefix(frame.builder.folder.prefix) { return }
      finished.append(
        Finished(
          builder: frame.builder, fetchedAt: frame.startedAt,
          cost: Span(nanoseconds: state.cost.nanoseconds - frame.costBefore.nanoseconds)))
      state.open.removeLast()
    }
  }

  /// Puts an object in its folder, opening the folders that lead there.
  private static func add(
    _ object: ObjectInfo, to state: inout State, _ names: KeyNames, asked: Timestamp,
    costBefore: Span
  ) {
    while let top = state.open.indices.last {
      let folder = state.open[top].builder.folder
      let rest = object.key.bytes.dropFirst(folder.prefix.count)
      guard let cut = rest.firstIndex(of: ByteString.slash) else {
        state.open[top].builder.add(object)
        return
      }
      let segment = ByteString(rest[..<cut])
      guard names.name(of: segment) != nil else {
        state.open[top].builder.add(hidden: object.key)
        return
      }
      state.open[top].builder.add(folder: segment)
      state.open.append(
        Frame(
          builder: ListingBuilder(folder.folder(segment), names: names), startedAt: asked,
          costBefore: costBefore))
    }
  }
}
