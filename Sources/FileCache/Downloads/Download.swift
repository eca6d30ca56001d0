import BucketStore
import Platform

/// One version of one object on its way to this device, whole or in parts.
///
/// It begins as a question: a request that is conditional on the tag of what is kept already. The
/// store's "not modified" ends it; a success makes it a download, whose first transfer is that very
/// answer. From then on it is a map of the bytes that are there, a few transfers that each fetch
/// one range, and readers that wait for a range. A stream from first byte to last is one transfer
/// over the whole; random reads of a large object are several over parts.
///
/// Never wrong bytes:
/// - Every answer must carry the tag, size and time of the first; another version ends it, and who
///   has it open gets `damaged` for what is missing, never a mixture.
/// - When the tag is an MD5, or the writer left a SHA-256, the bytes are compared with it once all
///   are there, before the file becomes a copy. Readers get bytes earlier, but never the last ones: of an object that is
///   fetched as one stream the last 128 KiB are withheld until then, so a small one is not served
///   unchecked at all, and none can be read to its end. Bytes that differ are fetched once more,
///   all of them, and nothing is handed out meanwhile; readers go on only if what they were given
///   before proves right. Parts of a large object are checked by tag and length alone until it is
///   whole.
///
/// Guarded by its own lock, which comes after the cache's.
final class Download: Sendable {
  let object: ObjectName
  /// Names these bytes within this run of the program.
  let content: UInt64
  let cache: FileCache
  /// Ends the question that is asked while the bytes are compared.
  let checking = Cancellation()
  let state: Locked<State>

  /// What an opening file would be served when the store says that it is current.
  enum Candidate: Sendable {
    case copy(Copy)
    case partial(Partial)
    case download(Download)
  }

  enum Phase: Sendable {
    /// The store was asked and has not answered.
    case asking
    /// The store says that the candidate is current.
    case unchanged
    /// Bytes may be fetched.
    case open
    /// All bytes are there and are being compared with the checksum.
    case checking
    /// All bytes are there, and right as far as the store lets us tell.
    case whole
    /// Nobody has it open; it takes no more readers.
    case closed
    /// No byte that is not there will come.
    case ended(StoreError)
  }

  struct State {
    var phase: Phase
    /// What is kept already, whose tag the store is asked about; nil once it has another one.
    var candidate: Candidate?
    /// The version that a listing has shown.
    var listed: ListedVersion?
    var facts: ObjectFacts?
    /// False when the store did not say how long the object is; then all must be there first.
    var isSizeKnown = true
    /// Whether two answers gave the same size: bytes that are missing were cut off, not announced
    /// by mistake.
    var isSizeProven = false
    var fetched = Timestamp.now
    var confirmed = Timestamp.now
    var file: PartFile?
    var present = PartMap()
    /// What readers were given before the bytes were checked.
    var handed = PartMap()
    /// Bytes that did not match the checksum, kept to compare with what was handed out.
    var suspect: PartFile?
    var isSecondTry = false
    /// No file can be written: readers ask the store themselves.
    var isDirect = false
    /// The store has another version now, and none of these bytes were of it.
    var isReplaced = false
    /// The store has contradicted itself: its word for this version is not to be kept.
    var isDoubtful = false
    /// A newer version is known, or the object was dropped: these bytes become no copy.
    var isSuperseded = false
    /// Whether the file has become a copy, or never will; for who waits for that.
    var isSettled = false
    var readers = 0
    var transfers: [Int: Transfer] = [:]
    var lastTransfer = 0
    /// Counts transfers that failed for good, for who waits for their bytes.
    var failures = 0
    var lastFailure: StoreError?
    /// Counts bytes as they arrive, and as they are checked: progress.
    var received: Int64 = 0
    /// When a byte arrived or was checked last, or something showed that bytes will come.
    var lastSign = Instant(nanoseconds: 0)

    init(_ phase: Phase) {
      self.phase = phase
    }
  }

  /// A question to the store: what is the object now?
  ///
  /// - Parameter listed: the version that a listing has shown; an answer of an older one comes from a
  ///   cache on the way, and is asked for once more past it.
  init(
    asking object: ObjectName, content: UInt64, candidate: Candidate?, listed: ListedVersion?,
    cache: FileCache
  ) {
    self.object = object
    self.content = content
    self.cache = cache
    var state = State(.asking)
    state.candidate = candidate
    state.listed = listed
    self.state = Locked(state)
  }

  /// A download in parts that goes on where an earlier one stopped.
  ///
  /// - Parameter confirmed: when the store said that it is current.
  init(
    resuming partial: Partial, file: PartFile, of object: ObjectName, content: UInt64,
    confirmed: Timestamp, cache: FileCache
  ) {
    self.object = object
    self.content = content
    self.cache = cache
    var state = State(.open)
    state.facts = partial.facts
    state.fetched = partial.fetched
    state.confirmed = confirmed
    state.file = file
    state.present = partial.present
    self.state = Locked(state)
  }

  /// How many bytes at the end of a stream are withheld until the checksum was compared: as much
  /// as the kernel asks for in one request.
  static let withheldTail: Int64 = 128 << 10
}

extension Download.State {
  var size: Int64 { facts?.size ?? 0 }

  /// Whether the bytes may yet turn out not to be those of the version: its tag is their MD5, or
  /// leads to the SHA-256 that the writer left.
  var isCheckable: Bool { facts?.tag != nil }

  var isEnded: Bool {
    switch phase {
    case .ended, .closed, .unchanged: true
    case .asking, .open, .checking, .whole: false
    }
  }

  var isWhole: Bool {
    if case .whole = phase { true } else { false }
  }
}
