import Platform
import StorageEmulator
import Testing

@Suite struct FaultTests {
  private let text = "0123456789"

  private func stage(_ faults: Fault...) throws -> Stage {
    let stage = try Stage()
    try stage.emulator.put("docs", "a", text.bytes)
    try stage.emulator.put("docs", "b", text.bytes)
    for fault in faults { stage.emulator.setFault(fault) }
    return stage
  }

  @Test func aFaultBefallsOnlyWhatItNamesAndOnlySoOften() throws {
    let stage = try stage(
      Fault(
        method: "GET", route: "object", bucket: "docs", key: "a", after: 1, times: 2,
        effect: .status(503, ["message": "no"])))
    #expect(try stage.get("b").status == 200)
    #expect(try stage.info("a").status == 200)
    #expect(try stage.get("a", method: "HEAD").status == 200)
    let got = try (0..<4).map { _ in try stage.get("a").status }
    #expect(got == [200, 503, 503, 200])
  }

  @Test func aProxyMayAnswerHTML() throws {
    let stage = try stage(Fault(times: 1, effect: .status(502, "<html>Bad gateway</html>")))
    let answer = try stage.get("a")
    #expect(answer.status == 502)
    #expect(answer.headers["Content-Type"] == "text/html; charset=utf-8")
    #expect(answer.text == "<html>Bad gateway</html>")
  }

  @Test(arguments: [
    ("SlowDown", "429 429 too_many_connections SlowDown"),
    ("DatabaseTimeout", "544 544 DatabaseTimeout DatabaseTimeout"),
    ("InternalError", "500 500 Internal InternalError"),
    ("LockTimeout", "400 503 acquiring_lock_timeout LockTimeout"),
    ("DatabaseReadOnly", "400 503 DatabaseReadOnly DatabaseReadOnly"),
    ("BlobMissing", "400 404 Not found NoSuchKey"),
    ("S3Error", "500 500 Unknown error S3Error"),
  ]) func theServersOwnTroublesHaveTheirOwnWords(_ trouble: String, _ wanted: String) throws {
    let stage = try stage(Fault(times: 1, effect: .trouble(trouble)))
    #expect(try stage.get("a").refusal == wanted)
  }

  @Test func anAnswerCanBeDelayed() throws {
    let stage = try stage(Fault(times: 1, effect: .delay(.milliseconds(300))))
    let start = Instant.now
    #expect(try stage.get("a").status == 200)
    #expect(Span.milliseconds(290) < Instant.now.since(start))
  }

  @Test func ahangingRequestIsNeverAnsweredAndLetsGoWhenFaultsAreCleared() throws {
    let stage = try stage(Fault(effect: .hang))
    #expect(throws: Errno.timedOut) {
      try stage.client.send(
        "GET", "/object/authenticated/docs/a", headers: stage.service, timeout: 1)
    }
    let ended = Locked(false)
    let thread = try Thread(name: "hanging") {
      do {
        let answer = try stage.client.send("GET", "/object/authenticated/docs/a")
        ended.withLock { $0 = answer == nil }
      } catch {
        Log.warning("the hanging request ended with \(error)")
      }
    }
    while stage.emulator.requests.entries().count < 2 {
      _ = Cancellation().sleep(until: .now + .milliseconds(5))
    }
    stage.emulator.clearFaults()
    #expect(thread.join(until: .now + .seconds(10)))
    #expect(ended.withLock { $0 })
    #expect(stage.emulator.requests.entries().map(\.status) == [0, 0])
  }

  @Test(arguments: [0, 1, 9]) func aDownloadCanBeCutAtAnyByte(_ count: Int) throws {
    let stage = try stage(Fault(times: 1, effect: .cut(after: count)))
    let answer = try stage.get("a")
    #expect(answer.status == 200)
    #expect(answer.headers["Content-Length"] == "10")
    #expect(answer.text == String(text.prefix(count)))
    #expect(stage.emulator.requests.entries().last?.bytesOut == count)
  }

  @Test func anUploadCanBeCutAndStoresNothing() throws {
    let stage = try stage(Fault(route: "upload", times: 1, effect: .cutRequest(after: 3)))
    let answer = try stage.client.send(
      "POST", "/object/docs/new", headers: stage.service, body: text.bytes)
    #expect(answer == nil)
    #expect(stage.emulator.object("docs", "new") == nil)
    #expect(try stage.upload("new", text.bytes).status == 200)
  }

  @Test func anAnswerCanBeLostAfterTheCommit() throws {
    let stage = try stage(Fault(route: "upload", times: 1, effect: .loseAnswer))
    let answer = try stage.client.send(
      "POST", "/object/docs/new", headers: stage.service, body: text.bytes)
    #expect(answer == nil)
    #expect(try stage.emulator.bytes("docs", "new") == text.bytes)
    #expect(stage.emulator.requests.entries().last?.status == 0)
  }

  @Test func contentLengthCanBeTooGreatOrTooSmall() throws {
    let stage = try stage(
      Fault(times: 1, effect: .lie(.length, by: 5)), Fault(times: 1, effect: .lie(.length, by: -4)))
    let greater = try stage.get("a")
    #expect(greater.headers["Content-Length"] == "15")
    #expect(greater.text == text)
    let lesser = try stage.get("a")
    #expect(lesser.headers["Content-Length"] == "6")
    #expect(lesser.text == text)
  }

  @Test func aBodyCanBeShortAndItsLengthAgree() throws {
    let stage = try stage(Fault(times: 1, effect: .lie(.short)))
    let answer = try stage.get("a")
    #expect(answer.text == "01234")
    #expect(answer.headers["Content-Length"] == "5")
  }

  @Test func tagsCanBeWrongOrWeakOrChangeBetweenParts() throws {
    let stage = try stage(
      Fault(times: 1, effect: .lie(.etag)), Fault(times: 1, effect: .lie(.weak)),
      Fault(effect: .tag(after: 2)))
    let tag = try #require(stage.emulator.object("docs", "a")?.tag)
    #expect(try stage.get("a").headers["ETag"] != tag)
    #expect(try stage.get("a").headers["ETag"] == "W/" + tag)
    let parts = try (0..<4).map { index in
      try stage.get("a", [("Range", "bytes=\(index)-\(index)")]).headers["ETag"] == tag
    }
    #expect(parts == [true, true, false, false])
  }

  @Test func aPageOfHTMLCanStandForTheObject() throws {
    let stage = try stage(Fault(times: 1, effect: .lie(.html)))
    let answer = try stage.get("a")
    #expect(answer.status == 200)
    #expect(answer.headers["Content-Type"] == "text/html; charset=utf-8")
    #expect(answer.text.hasPrefix("<!DOCTYPE html>"))
  }

  @Test func oneByteCanBeFlipped() throws {
    let stage = try stage(
      Fault(times: 1, effect: .lie(.flip)), Fault(times: 1, effect: .lie(.flip, at: 9)))
    #expect(try stage.get("a").text == "0123446789")
    #expect(try stage.get("a").text == "0123456788")
  }

  @Test func rangesCanBeIgnoredOrMisnamed() throws {
    let stage = try stage(
      Fault(times: 1, effect: .lie(.whole)), Fault(times: 1, effect: .lie(.range)))
    let whole = try stage.get("a", [("Range", "bytes=2-3")])
    #expect(whole.status == 200)
    #expect(whole.text == text)
    let misnamed = try stage.get("a", [("Range", "bytes=2-3")])
    #expect(misnamed.status == 206)
    #expect(misnamed.headers["Content-Range"] != "bytes 2-3/10")
    #expect(misnamed.text == "23")
  }

  @Test func notModifiedCanComeUnasked() throws {
    let stage = try stage(Fault(times: 1, effect: .lie(.notModified)))
    let answer = try stage.get("a")
    #expect(answer.status == 304)
    #expect(answer.body.isEmpty)
    #expect(stage.emulator.requests.entries().last?.status == 304)
  }

  @Test func aBodyCanBeSlow() throws {
    let stage = try stage(Fault(times: 1, effect: .slow(bytesPerSecond: 20)))
    let start = Instant.now
    #expect(try stage.get("a").text == text)
    #expect(Span.milliseconds(400) < Instant.now.since(start))
  }

  @Test func aBodyCanStall() throws {
    let stage = try stage(Fault(times: 1, effect: .stall(after: 4)))
    #expect(throws: Errno.timedOut) {
      try stage.client.send(
        "GET", "/object/authenticated/docs/a", headers: stage.service, timeout: 1)
    }
    #expect(stage.emulator.requests.entries().last?.bytesOut == 4)
  }

  @Test func faultsAreSetAndClearedOverHTTP() throws {
    let stage = try stage()
    func set(_ fault: JSON) throws -> Int {
      try stage.post("/_emulator/faults", fault, as: []).status
    }
    let effect: JSON = ["status": 503, "body": ["message": "later"], "delay_ms": 1]
    #expect(
      try set(["method": "GET", "route": "object", "key": "a", "times": 1, "effect": effect])
        == 200)
    #expect(try stage.get("a").status == 503)
    #expect(try stage.get("a").status == 200)
    for effect: JSON in [
      ["trouble": "LockTimeout"], ["hang": true], ["cut_after": 1], ["cut_request_after": 1],
      ["stall_after": 1], ["lose_answer": true], ["lie": "flip", "at": 3], ["etag_after": 1],
      ["bytes_per_s": 10], ["commit_delay_ms": 5], ["lie": "not_modified"],
    ] {
      #expect(try set(["key": "never", "effect": effect]) == 200)
    }
    // What is misspelt must not pass for a fault that never struck.
    #expect(try set(["efect": ["status": 1]]) == 400)
    #expect(try set(["effect": ["lie": "flap"]]) == 400)
    #expect(try set(["effect": ["statos": 1]]) == 400)
    #expect(try set(["effect": ["trouble": "Nonsense"]]) == 400)
    #expect(try set(["effect": ["status": 500]]) == 200)
    #expect(try stage.get("a").status == 500)
    #expect(try stage.send("DELETE", "/_emulator/faults").status == 200)
    #expect(try stage.get("a").status == 200)
  }
}
