import PendingQueue

/// Numbers with their nouns.
enum Count {
  static func files(_ count: Int) -> String { count == 1 ? "1 file" : "\(count) files" }

  /// What is still to be sent: files, and what is none.
  ///
  /// - Parameters:
  ///   - files: folders included.
  ///   - deletions: names that are to be deleted at the store.
  static func unsent(_ files: Int, folders: Int, deletions: Int) -> String {
    var parts: [String] = []
    if files > folders || folders + deletions == 0 { parts.append(Self.files(files - folders)) }
    if folders > 0 { parts.append(folders == 1 ? "1 new folder" : "\(folders) new folders") }
    if deletions > 0 { parts.append(deletions == 1 ? "1 deletion" : "\(deletions) deletions") }
    guard let last = parts.popLast() else { return "" }
    return parts.isEmpty ? last : parts.joined(separator: ", ") + " and " + last
  }
}

extension PendingCounts {
  private var unsentText: String {
    Count.unsent(writing + waiting + uploading, folders: folders, deletions: deletions)
  }

  /// What a person who mounts is to know of what an earlier mount has left.
  func remarks(at mountpoint: String, folder: String) -> [Complaint] {
    var remarks: [Complaint] = []
    if unsent > 0 {
      remarks.append(
        Complaint(
          .done,
          "\(unsentText) of an earlier mount \(unsent == 1 ? "waits" : "wait") "
            + "to be uploaded (\(Quantity.text(bytes: bytes)) pending in all)",
          hint: "bucketfs queue \(mountpoint) lists them"))
    }
    if failed > 0 {
      remarks.append(
        Complaint(
          .failed,
          "\(Count.files(failed)) could not be uploaded, and \(failed == 1 ? "is" : "are") kept "
            + "on this device",
          hint: "bucketfs queue \(mountpoint) shows why; bucketfs retry or remove ends it"))
    }
    if ofOthers > 0 {
      remarks.append(
        Complaint(
          .done,
          "\(Count.files(ofOthers)) in \(folder) \(ofOthers == 1 ? "belongs" : "belong") to "
            + "another account or store, and \(ofOthers == 1 ? "is" : "are") neither shown nor sent",
          hint: "mount with that account to send \(ofOthers == 1 ? "it" : "them")"))
    }
    if aside > 0 {
      remarks.append(
        Complaint(
          .failed,
          "\(Count.files(aside)) in \(folder) cannot be understood, and "
            + "\(aside == 1 ? "was" : "were") put aside",
          hint: "look at \(folder)/aside"))
    }
    return remarks
  }
}
