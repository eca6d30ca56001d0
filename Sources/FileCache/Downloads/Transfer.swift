import BucketStore
import Platform

/// One request for a range of an object, and the requests that resume it.
struct Transfer: Sendable {
  /// The first byte it was made for.
  let start: Int64
  /// The next byte that it will write.
  var next: Int64
  /// The end of what is wanted; nil until the store has said how long the object is.
  var limit: Int64?
  /// The answer goes on past `limit`: it is cut there unless readers have moved the limit on.
  var isElastic = false
  /// Whether a thread of the pool has begun with it.
  var isBegun = false
  /// Whether it was ended on purpose.
  var isStopped = false
  /// Ask past any cache in between.
  var isFresh = false
  /// Whether its answer was put aside, and is to be asked for once more.
  var isDoubted = false
  /// What it was found to have brought, when that cannot be used.
  var fault: StoreError?
  let call: Call

  init(start: Int64, limit: Int64?, call: Call) {
    self.start = start
    self.next = start
    self.limit = limit
    self.call = call
  }
}

/// Takes the bytes of one transfer; called on the store's thread.
final class TransferSink: GetSink {
  private let download: Download
  private let id: Int

  init(_ download: Download, _ id: Int) {
    self.download = download
    self.id = id
  }

  func begin(_ head: ObjectHead) -> Bool { download.begin(id, head) }

  func receive(_ bytes: UnsafeRawBufferPointer) -> Bool { download.receive(id, bytes) }

  func goesOn() { download.noteSign() }
}
