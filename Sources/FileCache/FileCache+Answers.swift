package import BucketStore
package import Platform

/// What the store said of an object, taken into the cache's state.
extension FileCache {
  /// The store has answered a question with an object: its download is the newest version.
  func answered(_ download: Download) {
    let old = state.withLock { state -> Download? in
      guard state.questions[download.object] === download else { return nil }
      state.questions[download.object] = nil
      return state.downloads.updateValue(download, forKey: download.object)
    }
    old?.supersede()
    forgetOlderParts(of: download)
  }

  /// Parts of an older version are of no use once there is a newer one.
  private func forgetOlderParts(of download: Download) {
    let partial = state.withLock { $0.partials[download.object] }
    if let partial { forget(download.object, partial) }
  }

  /// The store has answered a question without an object.
  func answered(_ download: Download, with phase: Download.Phase) {
    let object = download.object
    let isCurrent = state.withLock { state -> Bool in
      guard state.questions[object] === download else { return false }
      state.questions[object] = nil
      return true
    }
    switch phase {
    case .unchanged:
      if let candidate = download.state.withLock({ $0.candidate }) {
        confirm(candidate, of: object)
      }
    case .ended(let error):
      if error.kind == .notFound, isCurrent, store.session.isCredible { drop(object) }
    case .asking, .open, .checking, .whole, .closed: break
    }
  }

  private func confirm(_ candidate: Download.Candidate, of object: ObjectName) {
    switch candidate {
    case .copy(let copy):
      state.withLock { state in
        guard state.copies[object]?.content == copy.content else { return }
        state.copies[object]?.confirmed = .now
        state.touched.insert(object)
      }
    case .download(let download): download.state.withLock { $0.confirmed = .now }
    case .partial: break
    }
  }

  /// Drops what is kept of an object: it is gone, or another version of it was written.
  ///
  /// Who has it open keeps what was opened; a download on its way becomes no copy.
  package func drop(_ object: ObjectName) {
    let (copy, partial, downloads) = state.withLock { state in
      let downloads = [
        state.downloads.removeValue(forKey: object), state.questions.removeValue(forKey: object),
      ]
      return (state.copies[object], state.partials[object], downloads)
    }
    for download in downloads { download?.supersede() }
    if let copy { forget(object, copy) }
    if let partial { forget(object, partial) }
  }

  /// Takes a listing's word for copies: one of the same tag, size and time is current, and one of
  /// another tag or size is not, so that the next open asks the store.
  ///
  /// The time of a listing may differ from that of a download, which tells when the bytes were
  /// stored, not when the object was entered: up to two seconds count as the same, and a time that
  /// stays the same while the store confirms the tag is remembered as this version's.
  /// - Parameter time: when the listing was asked for.
  package func confirm(_ infos: [ObjectInfo], in bucket: ByteString, at time: Timestamp) {
    state.withLock { state in
      for info in infos {
        let object = ObjectName(bucket: bucket, key: info.key)
        if let download = state.downloads[object] { download.doubt(info, at: time) }
        guard var copy = state.copies[object] else { continue }
        if copy.facts.isContradicted(by: info), time > copy.confirmed {
          state.copies[object]?.confirmed = .epoch
          continue
        }
        guard info.tag != nil, EntityTag.areSame(info.tag, copy.facts.tag),
          info.size == copy.facts.size
        else {
          continue
        }
        if copy.isOf(info.modified) {
          guard time > copy.confirmed else { continue }
          copy.confirmed = time
        } else {
          guard copy.listed != info.modified else { continue }
          copy.listed = info.modified
          copy.listedAt = time
        }
        state.copies[object] = copy
        state.touched.insert(object)
      }
    }
  }
}

extension Copy {
  /// Whether a listing's time is the one of this version.
  fileprivate func isOf(_ modified: Timestamp?) -> Bool {
    guard let modified, let known = facts.modified else { return true }
    if modified.since(known).nanoseconds.magnitude <= 2_000_000_000 { return true }
    return modified == confirmedListed
  }
}

extension Download {
  /// A listing shows another version than this one: it no longer counts as just confirmed.
  fileprivate func doubt(_ info: ObjectInfo, at time: Timestamp) {
    state.withLock { state in
      guard let facts = state.facts, facts.isContradicted(by: info), time > state.confirmed else {
        return
      }
      state.confirmed = .epoch
    }
  }
}

extension ObjectFacts {
  /// Whether a listing's line is certainly of another version.
  fileprivate func isContradicted(by info: ObjectInfo) -> Bool {
    if let size = info.size, size != self.size { return true }
    if let tag = info.tag, let known = self.tag { return !EntityTag.areSame(tag, known) }
    return false
  }
}
