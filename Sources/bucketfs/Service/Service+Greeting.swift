import BucketStore
import FileCache
import FileSystem
import PendingQueue
import Platform

extension Service {
  /// Tells what an earlier mount left to be sent, and what cannot be sent.
  func tellPending() {
    guard let counts = queue?.counts else {
      let count = plan.pendingCount
      if count > 0 {
        Console.remark(
          Complaint(
            .done,
            "\(Count.files(count)) in \(plan.pendingFolder) \(count == 1 ? "is" : "are") "
              + "not stored yet, and neither shown nor sent by a read-only mount",
            hint: "mount without ro"
          ).text)
      }
      return
    }
    for remark in counts.remarks(at: mountpoint, folder: plan.pendingFolder) {
      Console.remark(remark.text)
    }
  }

  /// How long the first question to the store may keep a mount waiting.
  private static let patience = Span.seconds(5)

  /// Asks the store once before the mount comes up, so that a mistake is told to the person.
  ///
  /// A store that is not reached is a remark: what is kept can be browsed without it.
  /// - Throws: `Complaint` when the store refuses the credentials or has no such bucket.
  func greet() throws(Complaint) {
    if parts.network.current == .disabled {
      Console.remark(
        Complaint(
          .done, "network access is switched off: what is kept on this device is shown",
          hint: "bucketfs online \(mountpoint) switches it on"
        ).text)
      return
    }
    let call = Call(timeout: min(plan.settings.timeout, Self.patience))
    do throws(StoreError) {
      guard let bucket = plan.bucket else {
        if try parts.store.buckets(call).isEmpty {
          Console.remark(
            Complaint(
              .done, "\(plan.source): there is no bucket to show",
              hint: "one that may not be listed can be named, as in -o bucket=NAME"
            ).text)
        }
        return
      }
      if try parts.store.bucketExists(bucket, call) {
        try greetFolder(call)
        return
      }
    } catch {
      switch error.kind {
      case .refused, .sessionExpired:
        throw Complaint(
          .refused, "\(plan.source): the store refuses us: \(error.message)",
          hint: plan.credentialsHint)
      case .connectivity, .timeout, .offline, .disabled:
        Console.remark(
          Complaint(
            .offline, "\(plan.source): the store cannot be reached: \(error.message)",
            hint: "it is mounted all the same, and shows what is kept on this device"
          ).text)
      default:
        Console.remark(
          Complaint(
            .failed, "\(plan.source): the store fails: \(error.message)",
            hint: "it is mounted all the same, and shows what is kept on this device"
          ).text)
      }
      return
    }
    throw Complaint(
      .no, "\(plan.source): there is no bucket \(plan.bucket ?? ByteString())",
      hint: "check its name; the key must be allowed to see it")
  }

  /// Says so where the folder that is to be the mount's root is missing: it may be a slip, and it is
  /// no mistake to begin a new one.
  private func greetFolder(_ call: Call) throws(StoreError) {
    let root = plan.root
    guard !root.isBucket, !root.isBuckets else { return }
    let page = try parts.store.list(
      ListRequest(bucket: root.bucket, prefix: root.prefix, delimited: true), call)
    guard page.objects.isEmpty, page.folders.isEmpty, page.next == nil else { return }
    Console.remark(
      Complaint(
        .done, "\(plan.source): there is nothing below \(root.prefix) in the bucket \(root.bucket)",
        hint: "it is mounted all the same, and is empty; check the name, or go on and fill it"
      ).text)
  }

  /// How long the first look at the top folders may keep a mount waiting.
  private static let firstLook = Span.seconds(2)
  /// How many buckets are looked into.
  private static let mostBuckets = 16

  /// Lists the top folders where nothing is kept of them yet: a file can be put into a folder
  /// without the network only when its names are known.
  func lookAround() {
    guard queue != nil, parts.network.current == .online else { return }
    let listings = fileSystem.listings
    let end = Instant.now + Self.firstLook
    do throws(StoreError) {
      if !listings.isKept(plan.root) { try listings.confirm(plan.root, call(until: end)) }
      guard plan.root.isBuckets, let buckets = listings.kept(.buckets) else { return }
      for index in 0..<min(buckets.count, Self.mostBuckets) where Instant.now < end {
        guard let name = listings.options.names.segment(of: buckets[index].name) else { continue }
        let bucket = FolderName(bucket: name)
        if !listings.isKept(bucket) { try listings.confirm(bucket, call(until: end)) }
      }
    } catch {
      Log.info("the top folders are not known yet: \(error)")
    }
  }

  private func call(until end: Instant) -> Call {
    Call(timeout: max(end.since(.now), .milliseconds(1)))
  }
}
