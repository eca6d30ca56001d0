import Platform

/// An open file that several values share; closed with the last of them.
final class SharedFile: Sendable {
  let file: File

  init(_ file: consuming File) {
    self.file = file
  }
}
