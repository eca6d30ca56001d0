import BucketStore
import FileCache
import PendingQueue
import Platform

/// Moving objects at the store.
extension FileSystem {
  /// Moves an object at the store.
  ///
  /// - Parameters:
  ///   - replacing: whether something has the new name, as far as is known.
  ///   - mayReplace: whether what has the new name all the same is to be replaced.
  ///   - line: what is known of it under its old name.
  /// - Returns: the store's facts of it under its new name, as far as they are known.
  func moveStored(
    _ source: ObjectName, to target: ObjectName, replacing: Bool, mayReplace: Bool,
    _ line: ListingEntry?, _ queue: PendingQueue, _ caller: Caller
  ) throws(Failure) -> ObjectInfo {
    guard caller.lane == .slow else { throw .mustWait }
    let store = queue.store
    // Whatever comes of it, what was kept of the target is not sure from here on.
    defer { cache.drop(target) }
    var replacing = replacing
    while true {
      do throws(StoreError) {
        // Who opens the target meanwhile sees the old bytes or the new, and never none.
        try store.move(source, to: target, overwriting: replacing, caller.call)
        return facts(of: target, line, store, caller)
      } catch {
        if let info = movedAnyway(source, to: target, line, error, store, caller) { return info }
        // What has the new name was stored at this very moment.
        guard error.kind == .exists, mayReplace, !replacing else {
          throw Failure(error, "\(source) to \(target)")
        }
        replacing = true
      }
    }
  }

  private func facts(
    of target: ObjectName, _ line: ListingEntry?, _ store: any WritableStore, _ caller: Caller
  ) -> ObjectInfo {
    do throws(StoreError) {
      return try store.info(target, caller.call)
    } catch {
      // It is done all the same. Its version there is for the next listing to tell; a tag that is of
      // the bytes alone stays, and what is changed until then is based on it.
      Log.info("\(target): moved, but not asked about: \(error)")
      return ObjectInfo(
        key: target.key, size: line?.size, tag: line?.tag.flatMap { $0.contains("-") ? nil : $0 },
        modified: line?.modified, contentType: line?.contentType)
    }
  }

  /// What the store has under the new name, when of a move that failed the answer alone was lost.
  private func movedAnyway(
    _ source: ObjectName, to target: ObjectName, _ line: ListingEntry?, _ error: StoreError,
    _ store: any WritableStore, _ caller: Caller
  ) -> ObjectInfo? {
    guard let line, error.kind.isConnectivity || error.kind == .notFound || error.kind == .server,
      let found = askAgain(target, store, caller), let info = found, line.isVersion(of: info)
    else { return nil }
    switch askAgain(source, store, caller) {
    case .some(nil): return info
    case .some(let left?):
      // It was copied, and is still to be deleted.
      guard left.tag == info.tag, left.size == info.size else { return nil }
      do throws(StoreError) {
        try store.delete(source, caller.call)
        return info
      } catch {
        return error.kind == .notFound && store.session.isCredible ? info : nil
      }
    case nil: return nil
    }
  }

  /// Asks about an object after an answer was lost, for as long as the way there may come back.
  ///
  /// - Returns: nil when nothing was heard; an inner nil when there is no such object.
  private func askAgain(_ object: ObjectName, _ store: any WritableStore, _ caller: Caller)
    -> ObjectInfo??
  {
    let deadline = Instant.now + .seconds(2)
    let pause = Locked(())
    while true {
      do throws(StoreError) {
        return .some(try store.info(object, caller.call))
      } catch {
        if error.kind == .notFound, store.session.isCredible { return .some(nil) }
        guard error.kind.isConnectivity || error.kind == .offline, Instant.now < deadline,
          !caller.call.cancellation.isCancelled
        else { return nil }
        _ = pause.wait(until: .now + .milliseconds(50)) { _ -> Bool? in nil }
      }
    }
  }
}

extension ListingEntry {
  /// Whether an object may be this one under another name: copying may change a tag that is not of
  /// the bytes alone.
  fileprivate func isVersion(of info: ObjectInfo) -> Bool {
    guard let size, size == info.size else { return false }
    guard let tag, let other = info.tag, !tag.contains("-"), !other.contains("-") else {
      return true
    }
    return tag == other
  }
}
