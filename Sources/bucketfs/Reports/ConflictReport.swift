/// A file that was changed here and elsewhere, and is there twice now.
struct ConflictReport: Codable, Equatable, Sendable {
  /// When it was found out.
  let at: String
  /// Where the other writer's is.
  let path: String
  /// Where ours is.
  let copy: String

  /// The line for people.
  var text: String { "\(path) was changed elsewhere too; ours is \(name)" }

  /// The name of ours without the folder, which is the same.
  private var name: String {
    copy.lastIndex(of: "/").map { String(copy[copy.index(after: $0)...]) } ?? copy
  }
}
