/// Transfers that wait for a slot, and the count of those that have one. Net thread only.
///
/// Questions (listings, facts, sign-in), objects that come, and bytes that go out queue apart. A
/// quarter of the slots is out of reach for questions while the others want it, and for the others
/// always: a folder opens while large objects stream, and those go on under a storm of questions.
/// As many more are there for uploads alone, and uploads take no more than half of the slots beside
/// those: where the transfers of one way all hang, the other goes on.
struct TransferQueue {
  /// What a transfer carries.
  private enum Kind: CaseIterable {
    case question
    case upload
    case download

    init(_ transfer: Transfer) {
      self = !transfer.isBulk ? .question : transfer.isUpload ? .upload : .download
    }
  }

  private struct Line {
    var waiting: [Transfer] = []
    var running = 0
  }

  private let slots: Int
  private let reserve: Int
  private var questions = Line()
  private var uploads = Line()
  private var downloads = Line()

  init(slots: Int) {
    self.slots = slots
    reserve = slots / 4
  }

  mutating func add(_ transfer: Transfer) {
    withLine(Kind(transfer)) { $0.waiting.append(transfer) }
  }

  mutating func remove(_ transfer: Transfer) {
    withLine(Kind(transfer)) { line in line.waiting.removeAll { $0 === transfer } }
  }

  mutating func removeAll() -> [Transfer] {
    Kind.allCases.flatMap { kind in
      withLine(kind) { line in
        defer { line.waiting = [] }
        return line.waiting
      }
    }
  }

  var canStart: Bool { Kind.allCases.contains { canStart($0) } }

  /// The next transfer that may start; it holds a slot until `finished`.
  mutating func startNext() -> Transfer? {
    guard let kind = Kind.allCases.first(where: { canStart($0) }) else { return nil }
    return withLine(kind) { line in
      line.running += 1
      return line.waiting.removeFirst()
    }
  }

  mutating func finished(_ transfer: Transfer) {
    withLine(Kind(transfer)) { $0.running -= 1 }
  }

  private mutating func withLine<Result>(_ kind: Kind, _ body: (inout Line) -> Result) -> Result {
    switch kind {
    case .question: body(&questions)
    case .upload: body(&uploads)
    case .download: body(&downloads)
    }
  }

  /// Transfers of bytes in slots that are not for uploads alone.
  private var objects: Int { downloads.running + max(0, uploads.running - reserve) }

  private var hasRoom: Bool { questions.running + objects < slots }

  private var hasRoomForObjects: Bool { hasRoom && objects < slots - reserve }

  private func canStart(_ kind: Kind) -> Bool {
    switch kind {
    case .question:
      let isAlone = uploads.waiting.isEmpty && downloads.waiting.isEmpty
      return !questions.waiting.isEmpty && hasRoom
        && (isAlone || questions.running < slots - reserve)
    case .upload:
      let most = max(1, slots / 2)
      return !uploads.waiting.isEmpty
        && (uploads.running < reserve || (hasRoomForObjects && uploads.running < reserve + most))
    case .download: return !downloads.waiting.isEmpty && hasRoomForObjects
    }
  }
}
