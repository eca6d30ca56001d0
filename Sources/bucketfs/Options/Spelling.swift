/// Finds what a person may have meant.
enum Spelling {
  /// The candidate that fewest letters tell from the word; nil when none is near.
  static func nearest(to word: String, among candidates: [String]) -> String? {
    let letters = Array(word.utf8)
    let best = candidates.map { (name: $0, distance: distance(letters, Array($0.utf8))) }
      .min { $0.distance < $1.distance }
    guard let best, best.distance <= max(2, letters.count / 3) else { return nil }
    return best.name
  }

  /// Levenshtein's distance: insertions, deletions and replacements.
  private static func distance(_ left: [UInt8], _ right: [UInt8]) -> Int {
    var row = Array(0...right.count)
    for (i, a) in left.enumerated() {
      var diagonal = row[0]
      row[0] = i + 1
      for (j, b) in right.enumerated() {
        let replaced = diagonal + (a == b ? 0 : 1)
        diagonal = row[j + 1]
        row[j + 1] = min(replaced, row[j] + 1, row[j + 1] + 1)
      }
    }
    return row[right.count]
  }
}
