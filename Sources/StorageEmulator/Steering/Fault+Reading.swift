import Platform

extension Fault {
  /// Reads a fault of this shape; every member may be left out but `effect`:
  ///
  ///     {"method": "GET", "route": "object", "bucket": null, "key": "a/b.jpg", "after": 0,
  ///      "times": 1, "effect": {"status": 503, "body": {…}}}
  ///
  /// Members of `effect`: `status`, `body`, `trouble`, `delay_ms`, `hang`, `cut_after`,
  /// `cut_request_after`, `stall_after`, `lose_answer`, `lie`, `by`, `at`, `etag_after`,
  /// `bytes_per_s`, `commit_delay_ms`, `fail_commit`.
  ///
  /// - Returns: nil when a member is unknown or of the wrong kind: a fault that was misspelt must
  ///   not pass for one that never struck.
  init?(reading json: JSON) {
    let allowed: Set<String> = ["method", "route", "bucket", "key", "after", "times", "effect"]
    guard case .object(let members) = json, members.allSatisfy({ allowed.contains($0.name) }),
      let effect = json["effect"].flatMap(Effect.init(reading:))
    else { return nil }
    self.init(
      method: json["method"]?.text ?? "*", route: json["route"]?.text ?? "*",
      bucket: json["bucket"]?.text, key: json["key"]?.text.map { ByteString($0) },
      after: Int(json["after"]?.whole ?? 0), times: Int(json["times"]?.whole ?? -1),
      effect: effect)
  }
}

extension Fault.Effect {
  fileprivate init?(reading json: JSON) {
    guard case .object(let members) = json, !members.isEmpty else { return nil }
    self.init()
    for member in members {
      guard take(member.name, member.value) else { return nil }
    }
  }

  private mutating func take(_ name: String, _ value: JSON) -> Bool {
    let whole = value.whole.map { Int($0) }
    switch name {
    case "status": status = whole
    case "body":
      body = value
      return true
    case "trouble", "error":
      trouble = value.text
      return trouble.map { Refusal.troubles[$0] != nil } ?? false
    case "delay_ms": delay = .milliseconds(value.whole ?? 0)
    case "hang": hangs = value.flag ?? false
    case "cut_after": cutAfter = whole
    case "cut_request_after": cutRequestAfter = whole
    case "stall_after": stallAfter = whole
    case "lose_answer": losesAnswer = value.flag ?? false
    case "lie":
      lie = value.text.flatMap(Fault.Lie.init(rawValue:))
      return lie != nil
    case "by": by = whole ?? -1
    case "at": at = whole
    case "etag_after": tagAfter = whole
    case "bytes_per_s": bytesPerSecond = whole
    case "fail_commit":
      commitTrouble = value.text
      return commitTrouble.map { Refusal.troubles[$0] != nil } ?? false
    case "commit_delay_ms": commitDelay = .milliseconds(value.whole ?? 0)
    default: return false
    }
    return whole != nil || value.flag != nil
  }
}
