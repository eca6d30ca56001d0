import BucketStore
import Glibc
import Platform
import TestSupport
import Testing

@Suite(.serialized) struct HTTPConcurrencyTests {
  @Test func requestsBeyondTheSlotsWaitTheirTurn() throws {
    let client = try HTTPClient()
    let gauge = Locked((now: 0, most: 0))
    let server = try RawServer.keeping { connection, request in
      gauge.withLock { gauge in
        gauge.now += 1
        gauge.most = max(gauge.most, gauge.now)
      }
      connection.pause(.milliseconds(20))
      gauge.withLock { $0.now -= 1 }
      connection.answer("200 OK", request.target)
    }
    let bodies = try inParallel(64) { number in
      do throws(StoreError) {
        return try client.get(server.url + "/\(number)").body
      } catch {
        return Array(error.message.utf8)
      }
    }
    #expect(bodies == (0..<64).map { Array("/\($0)".utf8) })
    #expect(gauge.withLock { $0.most } == 16)
    #expect(server.mostOpen <= 16)
  }

  @Test func questionsAreAnsweredWhileDownloadsFillTheirSlots() throws {
    let client = try HTTPClient(HTTPOptions(active: 4))
    let release = Cancellation()
    let server = try RawServer.keeping { connection, request in
      if request.target == "/large" {
        connection.send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n")
        _ = release.sleep(until: .now + .seconds(30))
        connection.send("x")
      } else {
        connection.answer()
      }
    }
    let asker = try Thread(name: "asker") {
      _ = server.waitForRequests(3)
      let error = client.failure(HTTPRequest("GET", server.url + "/list"))
      #expect(error == nil)
      #expect(!release.isCancelled)
      release.cancel()
    }
    let failures = try inParallel(8) { _ in
      client.failure(HTTPRequest("GET", server.url + "/large"), into: RecordingSink())
    }
    asker.join()
    #expect(failures.allSatisfy { $0 == nil })
  }

  @Test func cancellingReturnsAtOnceWhileOthersGoOn() throws {
    let client = try HTTPClient(HTTPOptions(active: 32))
    let server = try RawServer { connection in
      guard let request = connection.readRequest() else { return }
      guard request.target == "/stream" else { return connection.hold() }
      connection.send("HTTP/1.1 200 OK\r\nContent-Length: 4000000\r\n\r\n")
      for _ in 0..<40 {
        connection.send([UInt8](repeating: 1, count: 100_000))
        connection.pause(.milliseconds(20))
      }
    }
    let canceller = try Thread(name: "canceller") {
      for _ in 0..<5 {
        let call = Call()
        let sink = RecordingSink()
        let late = Locked(Instant.now)
        let trigger = try? Thread(name: "trigger") {
          _ = Cancellation().sleep(until: .now + .milliseconds(50))
          late.withLock { $0 = .now }
          call.cancellation.cancel()
        }
        let error = client.failure(HTTPRequest("GET", server.url + "/never"), into: sink, call)
        let taken = Instant.now.since(late.withLock { $0 })
        trigger?.join()
        #expect(error?.kind == .cancelled)
        #expect(taken < .milliseconds(100))
        #expect(sink.record.responses.isEmpty)
      }
    }
    let sinks = (0..<10).map { _ in RecordingSink(keep: 0) }
    let failures = try inParallel(10) { number in
      client.failure(HTTPRequest("GET", server.url + "/stream"), into: sinks[number])
    }
    canceller.join()
    #expect(failures.allSatisfy { $0 == nil })
    #expect(sinks.allSatisfy { $0.record.count == 4_000_000 })
  }

  @Test func cancellingReturnsAtOnceWhileTheNetThreadIsBusy() throws {
    let client = try HTTPClient()
    let release = Cancellation()
    let busy = Cancellation()
    let server = try RawServer { connection in
      guard connection.readRequest()?.target == "/busy" else { return connection.hold() }
      connection.answer("200 OK", "x")
    }
    let holder = try Thread(name: "holder") {
      // A sink that breaks its promise: it holds the net thread up.
      let sink = RecordingSink { count in
        guard count > 0 else { return true }
        busy.cancel()
        _ = release.sleep(until: .now + .seconds(30))
        return true
      }
      #expect(client.failure(HTTPRequest("GET", server.url + "/busy"), into: sink) == nil)
    }
    let call = Call()
    let canceller = try Thread(name: "canceller") {
      _ = server.waitForRequests(1)
      _ = busy.sleep(until: .now + .seconds(20))
      call.cancellation.cancel()
    }
    let error = client.failure(HTTPRequest("GET", server.url + "/other"), call)
    #expect(error?.kind == .cancelled)
    #expect(busy.isCancelled && !release.isCancelled)
    release.cancel()
    holder.join()
    canceller.join()
  }

  @Test func noSinkIsCalledAfterItsCallHasReturned() throws {
    let client = try HTTPClient()
    let server = try RawServer { connection in
      guard connection.readRequest() != nil else { return }
      connection.send("HTTP/1.1 200 OK\r\n\r\n")
      while connection.send([UInt8](repeating: 1, count: 20_000)) {}
    }
    for round in 0..<50 {
      let sink = RecordingSink(keep: 0)
      let call = Call()
      let trigger = try Thread(name: "trigger") {
        _ = sink.waitForBytes(round * 1000 + 1)
        call.cancellation.cancel()
      }
      let error = client.failure(HTTPRequest("GET", server.url + "/"), into: sink, call)
      let count = sink.record.count
      trigger.join()
      #expect(error?.kind == .cancelled)
      _ = Cancellation().sleep(until: .now + .milliseconds(2))
      #expect(sink.record.count == count)
    }
  }

  @Test func aLongBodyStreamsInSmallPartsAndFlatMemory() throws {
    let client = try HTTPClient()
    let total = 200 << 20
    let server = try RawServer.keeping { connection, _ in
      connection.send("HTTP/1.1 200 OK\r\nContent-Length: \(total)\r\n\r\n")
      let part = [UInt8](repeating: 5, count: 1 << 20)
      for _ in 0..<200 { connection.send(part) }
    }
    let before = try residentBytes()
    let most = Locked(0)
    let sink = RecordingSink(keep: 0) { count in
      // Every eight megabytes or so.
      if count % (8 << 20) < 16 << 10 {
        // A reading that fails counts as none; the last one below must not.
        let now = (try? residentBytes()) ?? 0
        most.withLock { $0 = max($0, now) }
      }
      return true
    }
    _ = try client.get(server.url + "/", into: sink)
    #expect(sink.record.count == total)
    #expect(sink.record.largest <= 16 << 10)
    #expect(most.withLock { $0 } > 0)
    #expect(most.withLock { $0 } - before < 30 << 20)
  }

  private func residentBytes() throws -> Int {
    let text = String(decoding: try fileText("/proc/self/statm"), as: UTF8.self)
    let pages = try #require(text.split(separator: " ").dropFirst().first.flatMap { Int($0) })
    return pages * sysconf(CInt(_SC_PAGESIZE))
  }

  private func fileText(_ path: String) throws -> [UInt8] {
    let file = try File(path, O_RDONLY)
    var bytes = [UInt8](repeating: 0, count: 4096)
    let count = try bytes.withUnsafeMutableBytes { try file.read($0, at: 0) }
    return Array(bytes.prefix(count))
  }
}
