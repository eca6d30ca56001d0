/// Transfers that wait for a slot, and the count of those that have one. Net thread only.
///
/// Questions (no sink: listings, facts, sign-in) and downloads (with a sink) queue apart, and a
/// quarter of the slots is out of reach for each while the other wants it: a folder opens while
/// large objects stream, and downloads go on under a storm of questions.
struct TransferQueue {
  private let slots: Int
  private let reserve: Int
  private var questions: [Transfer] = []
  private var downloads: [Transfer] = []
  private var runningQuestions = 0
  private var runningDownloads = 0

  init(slots: Int) {
    self.slots = slots
    reserve = slots / 4
  }

  mutating func add(_ transfer: Transfer) {
    if transfer.sink == nil { questions.append(transfer) } else { downloads.append(transfer) }
  }

  mutating func remove(_ transfer: Transfer) {
    questions.removeAll { $0 === transfer }
    downloads.removeAll { $0 === transfer }
  }

  mutating func removeAll() -> [Transfer] {
    defer {
      questions = []
      downloads = []
    }
    return questions + downloads
  }

  var canStart: Bool { canStartQuestion || canStartDownload }

  /// The next transfer that may start; it holds a slot until `finished`.
  mutating func startNext() -> Transfer? {
    if canStartQuestion {
      runningQuestions += 1
      return questions.removeFirst()
    }
    if canStartDownload {
      runningDownloads += 1
      return downloads.removeFirst()
    }
    return nil
  }

  mutating func finished(_ transfer: Transfer) {
    if transfer.sink == nil { runningQuestions -= 1 } else { runningDownloads -= 1 }
  }

  private var isFull: Bool { runningQuestions + runningDownloads >= slots }

  private var canStartQuestion: Bool {
    !questions.isEmpty && !isFull
      && (downloads.isEmpty || runningQuestions < slots - reserve)
  }

  private var canStartDownload: Bool {
    !downloads.isEmpty && !isFull && runningDownloads < slots - reserve
  }
}
