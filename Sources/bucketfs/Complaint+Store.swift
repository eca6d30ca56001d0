import BucketStore

extension Complaint {
  /// Why the store did not do as asked.
  ///
  /// - Parameter subject: what it was about, such as a path.
  init(_ error: StoreError, _ subject: String) {
    let code: ExitCode =
      switch error.kind {
      case .notFound: .no
      case .refused, .sessionExpired, .keyRefused, .typeRefused, .tooLarge, .unsupported: .refused
      case .connectivity, .offline, .disabled, .timeout, .throttled: .offline
      case .conflict, .exists, .server, .damaged, .cancelled, .noRoom: .failed
      }
    self.init(code, "\(subject): \(error.message)", hint: Self.hint(error.kind))
  }

  private static func hint(_ kind: StoreError.Kind) -> String? {
    switch kind {
    case .disabled: "bucketfs online MOUNTPOINT switches network access on"
    case .refused, .sessionExpired:
      "check the key in \(Places.configuration) or in the environment"
    default: nil
    }
  }
}
