/// Transfers that wait for a slot, and the count of those that have one. Net thread only.
///
/// Questions (listings, facts, sign-in) and what carries objects (a sink, or a source of bytes)
/// queue apart, and a quarter of the slots is out of reach for each while the other wants it: a
/// folder opens while large objects stream, and those go on under a storm of questions.
struct TransferQueue {
  private let slots: Int
  private let reserve: Int
  private var questions: [Transfer] = []
  private var objects: [Transfer] = []
  private var runningQuestions = 0
  private var runningObjects = 0

  init(slots: Int) {
    self.slots = slots
    reserve = slots / 4
  }

  mutating func add(_ transfer: Transfer) {
    if transfer.isBulk { objects.append(transfer) } else { questions.append(transfer) }
  }

  mutating func remove(_ transfer: Transfer) {
    questions.removeAll { $0 === transfer }
    objects.removeAll { $0 === transfer }
  }

  mutating func removeAll() -> [Transfer] {
    defer {
      questions = []
      objects = []
    }
    return questions + objects
  }

  var canStart: Bool { canStartQuestion || canStartObject }

  /// The next transfer that may start; it holds a slot until `finished`.
  mutating func startNext() -> Transfer? {
    if canStartQuestion {
      runningQuestions += 1
      return questions.removeFirst()
    }
    if canStartObject {
      runningObjects += 1
      return objects.removeFirst()
    }
    return nil
  }

  mutating func finished(_ transfer: Transfer) {
    if transfer.isBulk { runningObjects -= 1 } else { runningQuestions -= 1 }
  }

  private var isFull: Bool { runningQuestions + runningObjects >= slots }

  private var canStartQuestion: Bool {
    !questions.isEmpty && !isFull
      && (objects.isEmpty || runningQuestions < slots - reserve)
  }

  private var canStartObject: Bool {
    !objects.isEmpty && !isFull && runningObjects < slots - reserve
  }
}
