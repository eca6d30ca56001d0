import Mount

extension Complaint {
  /// What went wrong with a mount point or the kernel.
  init(_ error: MountError) {
    let code: ExitCode =
      switch error {
      case .missing, .notDirectory, .options: .usage
      case .notMounted: .no
      case .notEmpty, .alreadyMounted, .busy, .unreachable, .device, .helperMissing,
        .allowOtherRefused, .refused:
        .refused
      case .system: .failed
      }
    self.init(code, error.description, hint: error.hint)
  }
}
