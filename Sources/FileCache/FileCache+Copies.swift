package import BucketStore
package import Platform

/// A copy as people and programs are told of it.
package struct CopyInfo: Sendable, Equatable {
  /// The file's absolute path.
  package let path: ByteString
  /// The object's facts as of the copy.
  package let info: ObjectInfo
  /// When its bytes came from the store, by this device's clock.
  package let fetched: Timestamp
  /// When the store last said that it is current, by this device's clock.
  package let confirmed: Timestamp
  /// Whether a person keeps it from eviction.
  package let isPinned: Bool
}

extension FileCache {
  /// The facts of the copy that is kept of an object, however old it is. Never the network.
  ///
  /// - Parameter comparing: whether the bytes of a file that somebody touched are compared, which
  ///   takes as long as reading them; without it such a file counts as the copy.
  /// - Returns: nil when there is none, or its file is not what it was.
  package func copy(of object: ObjectName, comparing: Bool = false) -> CopyInfo? {
    // Twice, since a file that is not what its row says may turn out to be a newer copy.
    for _ in 0..<2 {
      guard let copy = state.withLock({ $0.copies[object] }) else { return nil }
      if !comparing, isThere(object, copy) { return info(of: object, copy) }
      if openFile(object, copy) != nil { return info(of: object, copy) }
    }
    return nil
  }

  /// Whether there is a copy of an object, or one is on its way. Memory only.
  package func isKeptOrComing(_ object: ObjectName) -> Bool {
    state.withLock {
      $0.copies[object] != nil || $0.downloads[object] != nil || $0.questions[object] != nil
    }
  }

  private func info(of object: ObjectName, _ copy: Copy) -> CopyInfo {
    CopyInfo(
      path: ByteString(directory.path + "/") + copy.path, info: copy.facts.info(of: object),
      fetched: copy.fetched, confirmed: copy.confirmed, isPinned: copy.isPinned)
  }

  /// The copy of an object, downloaded first when there is none.
  ///
  /// - Throws: `StoreError`: why it cannot be downloaded; `noRoom` when it cannot be kept.
  package func ensure(_ object: ObjectName, _ call: Call) throws(StoreError) -> CopyInfo {
    for _ in 0..<3 {
      if let info = copy(of: object, comparing: true) { return info }
      if let download = state.withLock({ $0.downloads[object] }), download.isComplete {
        try download.waitUntilSettled(call)
        continue
      }
      let file = try open(object, call)
      defer { file.close() }
      try file.waitUntilKept(call)
    }
    if let info = copy(of: object, comparing: true) { return info }
    throw StoreError(.noRoom, "\(object): the copy does not stay, see the log")
  }

  /// One open file of a copy less.
  func closed(_ object: ObjectName) {
    state.withLock { state in
      guard let count = state.opens[object] else { return }
      state.opens[object] = count > 1 ? count - 1 : nil
      if state.copies[object] != nil {
        state.copies[object]?.used = .now
        state.touched.insert(object)
      }
    }
  }
}
