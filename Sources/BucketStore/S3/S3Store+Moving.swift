package import Platform

/// Moves. S3 has none: a move is a copy that is looked at, and a deletion of what was copied.
extension S3Store {
  package func move(_ object: ObjectName, to key: ByteString, _ call: Call) throws(StoreError) {
    try move(
      object, to: ObjectName(bucket: object.bucket, key: key), overwriting: false, call)
  }

  /// Not every server keeps the condition of a deletion, so the source is looked at just before.
  package func move(
    _ object: ObjectName, to target: ObjectName, overwriting: Bool, _ call: Call
  ) throws(StoreError) {
    let source = try info(object, call)
    if object == target { throw StoreError(.exists, "“\(target)” is the object itself") }
    let tag = try copy(source, of: object, to: target, overwriting: overwriting, call)
    let made = try info(target, call)
    guard made.size == source.size, made.userMetadata == source.userMetadata else {
      guard EntityTag.areSame(made.tag, tag) else {
        throw StoreError(.conflict, "“\(target)” was written by another meanwhile")
      }
      if !overwriting { undo(made, at: target, of: object, call) }
      throw StoreError(.server, "the store's copy of “\(object)” is not the same")
    }
    guard let failure = try remove(source, at: object, call) else { return }
    if failure.isCertain, !overwriting { undo(made, at: target, of: object, call) }
    throw failure.error
  }

  /// Why an object is still there.
  private struct Failure {
    let error: StoreError
    /// False where it may be deleted all the same.
    let isCertain: Bool
  }

  /// Deletes one version of an object. Not every server keeps the condition of a deletion, so the
  /// object is looked at just before; another writer may come between.
  ///
  /// - Returns: nil when there is no such object any more.
  private func remove(_ version: ObjectInfo, at object: ObjectName, _ call: Call)
    throws(StoreError) -> Failure?
  {
    let changed = Failure(
      error: StoreError(.conflict, "“\(object)” was written by another meanwhile"),
      isCertain: true)
    do throws(StoreError) {
      guard EntityTag.areSame(try info(object, call).tag, version.tag) else { return changed }
    } catch {
      if error.kind == .notFound { return nil }
      throw error
    }
    var question = Question("DELETE", object)
    question.repetition = .unlessWhole
    let plain = question
    question.headers = version.tag.map { [("If-Match", EntityTag.unmarked($0))] } ?? []
    let response = try send(question, else: plain, .deletion, call)
    switch response.status {
    case 200, 204, 404: return nil
    case 412: return changed
    default:
      let isCertain =
        (400..<500).contains(response.status) || [501, 503].contains(response.status)
      return Failure(
        error: S3Errors.error(on: response, reading: true), isCertain: isCertain)
    }
  }

  /// Takes a copy away again, so that nothing is under two names: unless another has written there
  /// since, or the copy is all that is left. Why the move failed is what the caller is told.
  private func undo(
    _ made: ObjectInfo, at target: ObjectName, of object: ObjectName, _ call: Call
  ) {
    do throws(StoreError) {
      _ = try info(object, call)
      guard try info(target, call).modified == made.modified else { return }
      if let failure = try remove(made, at: target, call) { throw failure.error }
    } catch {
      Log.warning("“\(object)” is under the name “\(target)” too: \(error)")
    }
  }
}
