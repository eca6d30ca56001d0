import FileCache

extension Complaint {
  /// Why the cache cannot be used.
  init(_ error: CacheError) {
    let code: ExitCode =
      switch error {
      case .inUse, .newerSchema, .unsafe: .refused
      case .system, .index, .noPlace: .failed
      }
    let hint: String? =
      switch error {
      case .inUse: "unmount it there first, or choose another cache_dir, and data_dir for writing"
      default: nil
      }
    self.init(code, error.description, hint: hint)
  }
}
