import FileCache

extension Complaint {
  /// Why the cache cannot be used.
  init(_ error: CacheError) {
    let code: ExitCode =
      switch error {
      case .inUse, .newerSchema, .unsafe: .refused
      case .system, .index, .noPlace: .failed
      }
    self.init(code, error.description)
  }
}
