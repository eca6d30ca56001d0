import BucketStore
import Platform
import Testing

/// A whole listing, put together from its pages.
struct WholeListing: Equatable {
  var keys: [ByteString] = []
  var folders: [ByteString] = []

  init() {}

  /// What a store lists, page by page.
  init(_ store: any BucketStore, _ bucket: ByteString, _ prefix: ByteString, delimited: Bool) throws
  {
    var request = ListRequest(bucket: bucket, prefix: prefix, delimited: delimited)
    for _ in 0..<100_000 {
      let page = try store.list(request, Call())
      keys += page.objects.map(\.key)
      folders += page.folders
      guard let next = page.next else { return }
      #expect(next != request.cursor, "the listing stands still")
      request.cursor = next
    }
    Issue.record("the listing does not end")
  }

  /// What is there: the keys below a prefix, those with a further slash summed up as folders.
  init(of all: [ByteString], below prefix: ByteString, delimited: Bool) {
    for key in all.filter({ $0.hasPrefix(prefix) }).sorted() {
      let slash = key.bytes.dropFirst(prefix.count).firstIndex(of: ByteString.slash)
      if delimited, let slash {
        let folder = ByteString(key.bytes[...slash])
        if folders.last != folder { folders.append(folder) }
      } else {
        keys.append(key)
      }
    }
    folders.sort()
  }

  /// What is missing, too much or out of place, in words.
  func difference(from held: WholeListing) -> String {
    let listed = keys + folders
    let all = held.keys + held.folders
    let missing = all.filter { !listed.contains($0) }
    let surplus = listed.filter { !all.contains($0) }
    let twice = Dictionary(grouping: listed, by: \.self).filter { $0.value.count > 1 }.keys.sorted()
    return "missing \(missing), surplus \(surplus), twice \(twice), "
      + "in order \(keys == keys.sorted() && folders == folders.sorted())"
  }
}

/// Names that listings stumble over.
enum AwkwardNames {
  static let all: [ByteString] = [
    "a", "a (1).jpg", "a.jpg", "a.jpg (1)", "a.jpg-thumb", "a.jpg.d/x", "a.jpg.d/y/z", "a.jpg.json",
    "a.jpg/inside", "a/b", "a/c", "a//b", "a//c/d", "a///e", "a0", "a_b", "axb/c", "b!", "b", "b/",
    "b//", "b/b", "dir/", "dir/x", "dir//", "/lead", "//lead", "/lead/deep", "Docs/a", "Docs/b",
    "docs/a", "docs/c", "docs-old/a", "DOCS/sub/x", "docs.txt", "e", "e!/1", "e!/2", "e(/3", "e+",
    "e,", "e-", "e.", "e./4", "e/", "n0500", "n0500 (1)", "n0500-1", "n0500.json", "n0501",
    "_", "_/x", "x_y", "xzy/k", "x_y/l", "z", "z z", "z/z/z/z", "~tilde", "ümlaut/ü",
  ]
}
