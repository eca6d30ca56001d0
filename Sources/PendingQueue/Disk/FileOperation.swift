/// A change of the queue's folder, as tests record and replay it.
enum FileOperation: Sendable, Equatable {
  case create(String)
  case write(String, at: Int64, [UInt8])
  case truncate(String, to: Int64)
  case rename(String, to: String)
  case remove(String)
  case syncFile(String)
  case syncFolder
}
