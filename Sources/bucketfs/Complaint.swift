/// What the program tells a person when it cannot do as asked: what, which, why, and what to do.
struct Complaint: Error, Equatable, Sendable {
  let code: ExitCode
  /// Lower case, no full stop, names the thing it speaks of.
  let sentence: String
  /// What the person can do about it; nil where there is nothing.
  let hint: String?

  init(_ code: ExitCode, _ sentence: String, hint: String? = nil) {
    self.code = code
    self.sentence = sentence
    self.hint = hint
  }

  /// The lines for standard error.
  var text: String {
    let lines = "bucketfs: \(sentence)\n"
    return hint.map { lines + "hint: \($0)\n" } ?? lines
  }
}
