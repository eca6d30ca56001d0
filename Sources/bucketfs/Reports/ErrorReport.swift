/// A complaint for programs.
struct ErrorReport: Codable, Equatable, Sendable {
  let error: String
  let exit: ExitCode
  @Nullable var hint: String?

  init(_ complaint: Complaint) {
    error = complaint.sentence
    exit = complaint.code
    hint = complaint.hint
  }
}
