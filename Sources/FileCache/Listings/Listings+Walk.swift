import BucketStore
import Platform

extension Listings {
  /// Goes on with the flat listing of a walk until it has passed a folder.
  ///
  /// - Returns: nil when the folder lies too far ahead, or not ahead, or the store refuses the
  ///   walk for what else lies there: it is then asked for alone.
  func walk(_ root: FolderName, to folder: FolderName, _ call: Call) throws(StoreError) -> Listing?
  {
    let walk = state.withLock { state -> FlatWalk in
      let now = Instant.now
      state.walks = state.walks.filter { !$0.value.isIdle(Self.walkPause, at: now) }
      if let walk = state.walks[root], !walk.isFinished { return walk }
      let walk = FlatWalk(root: root, names: options.names)
      state.walks[root] = walk
      return walk
    }
    for _ in 0..<Self.pagesForOneFolder {
      guard walk.isAhead(folder) else { return nil }
      switch walk.takeTurn(call.cancellation) {
      case .fetch(let cursor):
        do throws(StoreError) {
          try fetchPage(after: cursor, of: walk, call)
        } catch {
          // A server may show only now that it lists no subtree in order.
          if error.kind == .refused || error.kind == .unsupported { return nil }
          throw error
        }
      case .progressed, .finished: break
      case .cancelled: throw StoreError(.cancelled, "\(folder): interrupted")
      }
      if walk.hasJustPassed(folder), let listing = kept(folder) { return listing }
    }
    return nil
  }

  /// How long a walk may rest before it counts as given up.
  private static let walkPause = Span.seconds(5)
  /// How many pages of a walk are fetched for a folder that does not show up.
  private static let pagesForOneFolder = 8

  private func fetchPage(after cursor: ListCursor?, of walk: FlatWalk, _ call: Call)
    throws(StoreError)
  {
    let start = Instant.now
    let asked = Timestamp.now
    let page: ListPage
    do throws(StoreError) {
      page = try self.page(
        ListRequest(
          bucket: walk.root.bucket, prefix: walk.root.prefix, delimited: false, cursor: cursor),
        call)
      // What a stranger is shown is no proof of what the user has.
      guard store.session.isCredible else {
        throw StoreError(.sessionExpired, "\(walk.root): nobody is signed in, or not yet again")
      }
    } catch {
      walk.giveUp(isRefused: error.kind == .refused || error.kind == .unsupported)
      throw error
    }
    options.confirm(page.objects, walk.root.bucket, asked)
    let finished = walk.take(page, asked: asked, cost: Instant.now.since(start))
    keep(
      finished.filter(\.builder.isProven).map { part in
        let before = kept(part.builder.folder)
        return (
          part.builder.finish(fetchedAt: part.fetchedAt, cost: part.cost, after: before), before
        )
      })
    if page.next == nil {
      spread(walk.cost, below: walk.root, since: walk.startedAt)
      state.withLock { $0.walks[walk.root] = nil }
    }
    walk.passOn()
  }

  /// The walk was one listing, and each of its folders is believed as long as the whole cost allows.
  private func spread(_ cost: Span, below root: FolderName, since start: Timestamp) {
    let ticket = state.withLock { state in
      state.memory.setCost(cost, below: root, since: start)
      return rows?.queue([.setCost(cost, below: root, since: start)])
    }
    ticket?.wait()
  }
}
