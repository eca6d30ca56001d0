package import Platform

/// The remote side: buckets, keys and versions. It knows nothing of files and folders.
///
/// Every store keeps the same contract, and one suite of tests runs over all of them. Calls block
/// the calling thread, are safe from any thread, and end by themselves: they return, throw, or are
/// stopped through `Call`. Retries, the circuit breaker and the connectivity state are decorators
/// of this protocol, not code inside stores.
package protocol BucketStore: Sendable {
  /// What this store can do. May change once, after the first answer has shown what the server is.
  var capabilities: StoreCapabilities { get }

  /// Whose eyes the store is seen with; decides whether "not found" can be believed.
  var session: SessionState { get }

  /// Whether requests are sent at all; false while the network is known to be gone, or switched off.
  var isReached: Bool { get }

  /// The buckets that the caller may see, in bytewise order.
  ///
  /// Safe to repeat. An empty answer is no proof that there are none: a store may hide buckets
  /// whose objects it nevertheless serves.
  /// - Throws: `StoreError`.
  func buckets(_ call: Call) throws(StoreError) -> [BucketInfo]

  /// Whether a bucket exists and objects in it may be asked for.
  ///
  /// Tells an empty bucket from a missing one. Safe to repeat.
  /// - Throws: `StoreError`, except `notFound`, which is the answer false.
  func bucketExists(_ bucket: ByteString, _ call: Call) throws(StoreError) -> Bool

  /// One page of the keys that begin with a prefix.
  ///
  /// Pages follow each other through `ListPage.next`; all of them together hold every key that
  /// existed throughout, once, in bytewise order, whatever the page borders. A missing bucket may
  /// look empty. Safe to repeat.
  /// - Throws: `StoreError`; `unsupported` for a flat listing where `capabilities` has none.
  func list(_ request: ListRequest, _ call: Call) throws(StoreError) -> ListPage

  /// The facts of one object.
  ///
  /// Safe to repeat.
  /// - Throws: `StoreError`; `notFound` when there is no such object or the caller may not see it.
  func info(_ object: ObjectName, _ call: Call) throws(StoreError) -> ObjectInfo

  /// Reads an object, or a range of it, into a sink.
  ///
  /// The sink sees nothing before the status has been checked: an error page is never handed on.
  /// It is called on the store's own thread. The range may be answered with another one, or with
  /// the whole: `ObjectHead.range` says what comes. Safe to repeat.
  /// - Returns: `notModified` when the request named the tag that the object still has (the sink
  ///   was not called); `complete` when every byte that the head announced was received.
  /// - Throws: `StoreError`; `damaged` when the body was shorter or longer than announced;
  ///   `conflict` when the object was written meanwhile: what was handed on may be of two versions;
  ///   `cancelled` when the sink declined.
  func get(_ request: GetRequest, into sink: any GetSink, _ call: Call) throws(StoreError)
    -> GetOutcome
}

extension BucketStore {
  /// A store that nobody watches over is always asked.
  package var isReached: Bool { true }
}

/// What a store can do, stated by the store and never guessed by its caller.
package struct StoreCapabilities: Sendable, Equatable {
  /// Listings without a delimiter, in bytewise order over the whole subtree.
  package var flatListing: Bool
  /// The most keys that one page holds.
  package var pageSize: Int

  package init(flatListing: Bool, pageSize: Int) {
    self.flatListing = flatListing
    self.pageSize = pageSize
  }
}

/// Whose eyes a store is seen with.
package enum SessionState: String, Sendable {
  /// No sign-in is used: a key, or nothing, is the only identity.
  case keyOnly
  /// A user is signed in, with a token that is valid.
  case signedIn
  /// The token has expired or is not there yet, and a refresh is pending.
  case restoring
  /// A sign-in is wanted, and nobody is signed in.
  case signedOut

  /// Whether "not found" and refusals say something about the object, not about the caller.
  package var isCredible: Bool { self == .keyOnly || self == .signedIn }
}

/// An object's full name: its bucket and its key in it.
package struct ObjectName: Hashable, Sendable, CustomStringConvertible {
  /// The bucket's name.
  package let bucket: ByteString
  /// Without a slash at its beginning; never empty.
  package let key: ByteString

  package init(bucket: ByteString, key: ByteString) {
    self.bucket = bucket
    self.key = key
  }

  package var description: String { "\(bucket)/\(key)" }
}

/// A bucket as the store lists it.
package struct BucketInfo: Sendable, Equatable {
  /// As it stands in addresses.
  package let name: ByteString
  /// By the store's clock; nil when it does not say.
  package let created: Timestamp?

  package init(name: ByteString, created: Timestamp?) {
    self.name = name
    self.created = created
  }
}

/// The facts of an object that a listing or an info call tells.
package struct ObjectInfo: Sendable, Equatable {
  /// The object's key in its bucket.
  package var key: ByteString
  /// Bytes; nil when the store does not know.
  package var size: Int64?
  /// The entity tag as the store spells it, without a weak mark (`W/`).
  package var tag: String?
  /// The store's token of this very write; nil where a call does not tell it.
  package var version: String?
  /// When the object was last written, by the store's clock.
  package var modified: Timestamp?
  /// The media type; nil when the store does not say.
  package var contentType: String?
  /// The user's own metadata; nil where a call does not tell it (listings do not).
  package var userMetadata: [String: String]?

  package init(
    key: ByteString, size: Int64?, tag: String?, version: String? = nil, modified: Timestamp?,
    contentType: String? = nil, userMetadata: [String: String]? = nil
  ) {
    self.key = key
    self.size = size
    self.tag = tag
    self.version = version
    self.modified = modified
    self.contentType = contentType
    self.userMetadata = userMetadata
  }
}

extension ObjectInfo {
  /// The name of the user's metadata that holds the SHA-256 of the bytes, in hexadecimal.
  package static let digestKey = "sha256"

  /// The SHA-256 that the writer said the bytes have, in lower case; nil when it said none.
  package var sha256: String? {
    guard let text = userMetadata?[Self.digestKey]?.lowercased(), text.utf8.count == 64,
      text.utf8.allSatisfy({ (48...57).contains($0) || (97...102).contains($0) })
    else { return nil }
    return text
  }
}

/// Which keys to list.
package struct ListRequest: Sendable, Equatable {
  /// The bucket's name.
  package var bucket: ByteString
  /// What keys must begin with; a folder's prefix ends in `/`, the whole bucket's is empty.
  package var prefix: ByteString
  /// Whether keys with a `/` after the prefix are summed up as folders.
  package var delimited: Bool
  /// Where the page before ended; nil for the first.
  package var cursor: ListCursor?

  package init(
    bucket: ByteString, prefix: ByteString, delimited: Bool, cursor: ListCursor? = nil
  ) {
    self.bucket = bucket
    self.prefix = prefix
    self.delimited = delimited
    self.cursor = cursor
  }
}

/// Where a page of a listing ended. Only the store that made it can read it.
package struct ListCursor: Sendable, Equatable {
  /// Opaque to all but the store.
  package let text: String

  package init(_ text: String) {
    self.text = text
  }
}

/// A part of a listing, as large as the store likes to make it.
package struct ListPage: Sendable, Equatable {
  /// Objects in bytewise order of their full keys.
  package var objects: [ObjectInfo]
  /// Prefixes of folders right below the prefix, in bytewise order, each ending in `/`.
  package var folders: [ByteString]
  /// How to go on; nil when this was the last page.
  package var next: ListCursor?

  package init(objects: [ObjectInfo], folders: [ByteString], next: ListCursor?) {
    self.objects = objects
    self.folders = folders
    self.next = next
  }
}

/// What to read of an object.
package struct GetRequest: Sendable {
  /// What to read.
  package var object: ObjectName
  /// Bytes to read; nil for all. Never empty, and never beyond the known size.
  package var range: Range<Int64>?
  /// Answer "not modified" when the object still has this tag.
  package var unlessTag: String?
  /// Asks past any cache between the store and us: set to the version or tag that is wanted.
  package var fresh: String?

  package init(
    object: ObjectName, range: Range<Int64>? = nil, unlessTag: String? = nil, fresh: String? = nil
  ) {
    self.object = object
    self.range = range
    self.unlessTag = unlessTag
    self.fresh = fresh
  }
}

/// What the answer says of an object before its bytes come.
package struct ObjectHead: Sendable, Equatable {
  /// Size of the whole object in bytes; nil when the store does not say.
  package var size: Int64?
  /// The bytes that follow, of the whole; nil when their number is not known.
  package var range: Range<Int64>?
  /// The entity tag without a weak mark (`W/`); nil when the store does not say.
  package var tag: String?
  /// When the object was last written, by the store's clock; nil when it does not say.
  package var modified: Timestamp?
  /// The media type; nil when the store does not say.
  package var contentType: String?

  package init(
    size: Int64?, range: Range<Int64>?, tag: String?, modified: Timestamp?,
    contentType: String? = nil
  ) {
    self.size = size
    self.range = range
    self.tag = tag
    self.modified = modified
    self.contentType = contentType
  }
}

/// How a read ended.
package enum GetOutcome: Sendable, Equatable {
  case notModified
  case complete(ObjectHead)
}

/// Takes an object's bytes as they arrive.
///
/// Called on the store's own thread, one call at a time, in order; it may write to a local file but
/// must wait for nothing else. Returning false ends the transfer with `cancelled`.
package protocol GetSink: AnyObject, Sendable {
  /// The answer is a success, and this is what comes. Called once, before any byte.
  func begin(_ head: ObjectHead) -> Bool
  /// The next bytes.
  func receive(_ bytes: UnsafeRawBufferPointer) -> Bool
  /// The call's time has passed without bytes for this sink, and yet the request is not lost: it
  /// waits for its turn. Called on the thread that waits in `get`, at any time before it returns.
  func goesOn()
}

extension GetSink {
  package func goesOn() {}
}
