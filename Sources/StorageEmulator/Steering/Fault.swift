package import Platform

/// One misbehaviour and the requests it befalls.
package struct Fault: Sendable {
  /// `GET`, `PUT`… or `*`.
  package var method: String
  /// `object`, `list`, `info`, `upload`, `tus`, `auth`, `bucket`, `move`, `copy`, `remove`, `sign`, `*`.
  package var route: String
  /// nil for every bucket.
  package var bucket: String?
  /// nil for every key.
  package var key: ByteString?
  /// How many requests pass unharmed first.
  package var after: Int
  /// How many requests are befallen; below zero until the faults are cleared.
  package var times: Int
  /// What happens to them.
  package var effect: Effect

  package init(
    method: String = "*", route: String = "*", bucket: String? = nil, key: ByteString? = nil,
    after: Int = 0, times: Int = -1, effect: Effect
  ) {
    self.method = method
    self.route = route
    self.bucket = bucket
    self.key = key
    self.after = after
    self.times = times
    self.effect = effect
  }

  /// An untruth in an answer that is right otherwise.
  package enum Lie: String, Sendable, CaseIterable {
    /// Content-Length is off by `by` (-1): a greater one ends in a closed connection, a lesser one
    /// leaves bytes behind the answer.
    case length
    /// Half the body, with a Content-Length that fits the half.
    case short
    /// Another tag.
    case etag
    /// The tag, weakened to `W/"…"`.
    case weak
    /// A page of HTML with status 200 in place of the body.
    case html
    /// One byte of the body changed, in its middle or at `at`.
    case flip
    /// Content-Range names another place.
    case range
    /// The whole object with 200 to a request for a range.
    case whole
    /// 304, asked for or not.
    case notModified = "not_modified"
  }

  /// What happens; several may be joined, as a delay and a status.
  package struct Effect: Sendable {
    /// Answers with this status in place of the true answer.
    package var status: Int?
    /// The body that goes with `status`: text is sent as it is, anything else as JSON.
    package var body: JSON?
    /// Answers with one of the server's own troubles by its code: `SlowDown`, `LockTimeout`…
    package var trouble: String?
    /// How long to wait before anything is done.
    package var delay = Span.zero
    /// Never answers.
    package var hangs = false
    /// Ends the connection after so many bytes of the answer's body.
    package var cutAfter: Int?
    /// Ends the connection after so many bytes of the request's body; nothing is stored.
    package var cutRequestAfter: Int?
    /// Sends so many bytes of the body and then no more, the connection staying open.
    package var stallAfter: Int?
    /// Does what was asked and ends the connection in place of an answer.
    package var losesAnswer = false
    /// An untruth in the answer.
    package var lie: Lie?
    /// How far the lie `length` is off, in bytes.
    package var by = -1
    /// Where the lie `flip` changes a byte; nil for the middle.
    package var at: Int?
    /// The tag is true for so many answers and another one afterwards.
    package var tagAfter: Int?
    /// How fast the answer's body is sent; nil for at once.
    package var bytesPerSecond: Int?
    /// How long an upload waits between the permission test and the commit.
    package var commitDelay = Span.zero
    /// Takes all bytes of an upload, and then fails with this trouble and throws them away.
    package var commitTrouble: String?

    /// Nothing happens.
    package init() {}

    /// Answers with a status; text is sent as it is, other bodies as JSON.
    package static func status(_ status: Int, _ body: JSON? = nil) -> Effect {
      with {
        $0.status = status
        $0.body = body
      }
    }

    /// Answers with one of the server's own troubles, as `LockTimeout`.
    package static func trouble(_ code: String) -> Effect { with { $0.trouble = code } }
    /// Waits before anything is done.
    package static func delay(_ span: Span) -> Effect { with { $0.delay = span } }
    /// Never answers.
    package static var hang: Effect { with { $0.hangs = true } }
    /// Ends the connection after so many bytes of the answer's body.
    package static func cut(after bytes: Int) -> Effect { with { $0.cutAfter = bytes } }
    /// Ends the connection after so many bytes of the request's body.
    package static func cutRequest(after bytes: Int) -> Effect {
      with { $0.cutRequestAfter = bytes }
    }
    /// Sends so many bytes of the body and then no more.
    package static func stall(after bytes: Int) -> Effect { with { $0.stallAfter = bytes } }
    /// Does what was asked and ends the connection without an answer.
    package static var loseAnswer: Effect { with { $0.losesAnswer = true } }
    /// Answers with an untruth.
    package static func lie(_ lie: Lie, by: Int = -1, at: Int? = nil) -> Effect {
      with {
        $0.lie = lie
        $0.by = by
        $0.at = at
      }
    }
    /// Changes the tag after so many true answers.
    package static func tag(after answers: Int) -> Effect { with { $0.tagAfter = answers } }
    /// Sends the body so slowly.
    package static func slow(bytesPerSecond: Int) -> Effect {
      with { $0.bytesPerSecond = bytesPerSecond }
    }
    /// Waits between the permission test of an upload and its commit.
    package static func commitDelay(_ span: Span) -> Effect { with { $0.commitDelay = span } }

    /// Takes all bytes of an upload, and then fails with this trouble, as `LockTimeout`.
    package static func failCommit(_ code: String) -> Effect { with { $0.commitTrouble = code } }

    private static func with(_ change: (inout Effect) -> Void) -> Effect {
      var effect = Effect()
      change(&effect)
      return effect
    }
  }
}
