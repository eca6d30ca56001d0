import Foundation
import Glibc
import Platform
import TestSupport
import Testing

@testable import bucketfs

extension ProgramTests {
  /// The control socket, and those who misuse it.
  @Suite struct Control {
    /// A client that says bytes of its own choosing.
    private func connect(_ person: Person) throws -> File {
      let path = try #require(person.socketPath)
      let socket = File(
        owning: try check { Glibc.socket(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0) })
      var address = sockaddr_un()
      address.sun_family = sa_family_t(AF_UNIX)
      try #require(path.utf8.count < MemoryLayout.size(ofValue: address.sun_path))
      withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
      let descriptor = socket.descriptor
      try withUnsafePointer(to: &address) { pointer in
        try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
          _ = try check {
            Glibc.connect(descriptor, generic, socklen_t(MemoryLayout<sockaddr_un>.size))
          }
        }
      }
      return socket
    }

    private func answer(_ person: Person, to bytes: [UInt8]) throws -> ControlReply? {
      let socket = try connect(person)
      var bytes = bytes
      // The other side may have closed already, after a line that is too long.
      _ = send(socket.descriptor, &bytes, bytes.count, CInt(MSG_NOSIGNAL))
      do throws(Wire.Failure) {
        let line = try Wire.receive(
          from: socket.descriptor, limit: 1 << 20, silence: .seconds(20))
        return JSON.decode(ControlReply.self, from: line)
      } catch {
        return nil
      }
    }

    @Test func theSocketIsForItsUserAlone() throws {
      let person = try Person()
      try person.mount()
      var facts = stat()
      #expect(stat(try #require(person.socketPath), &facts) == 0)
      #expect(facts.st_mode & 0o777 == 0o600)
      #expect(stat(person.scratch.path("run/bucketfs"), &facts) == 0)
      #expect(facts.st_mode & 0o777 == 0o700)
      try person.unmount()
      #expect(person.socketPath == nil)
    }

    @Test func idleClientsKeepNobodyOut() throws {
      let person = try Person()
      try person.mount()
      var idle: [CInt] = []
      defer { for descriptor in idle { close(descriptor) } }
      for _ in 0..<100 { idle.append(dup(try connect(person).descriptor)) }
      #expect(try person.status()["state"] as? String == "serving")
      try person.unmount()
    }

    @Test func nonsenseIsRefusedAndHarmsNobody() throws {
      let person = try Person()
      try person.mount()
      var random = SeededGenerator(seed: 7)
      let lines: [[UInt8]] = [
        Array("hello\n".utf8), Array("{}\n".utf8), Array("{\"verb\":\"mount\"}\n".utf8),
        Array("{\"verb\":\"cached\",\"path\":\"%zz\"}\n".utf8),
        Array("{\"verb\":\"cached\",\"path\":\"../../etc/passwd\"}\n".utf8),
        Array("{\"verb\":\"cached\",\"path\":\"photos/%00%0A\"}\n".utf8),
        [UInt8](repeating: UInt8(ascii: "["), count: 60000) + [10],
        [UInt8](repeating: 0x61, count: 200_000), random.bytes(5000) + [10],
      ]
      for line in lines {
        guard case .refused(let code, _, _) = try answer(person, to: line) else {
          // Cut off in the middle of a line that was too long: also a refusal.
          #expect(line.count > ControlServer.longestRequest)
          continue
        }
        #expect(code == .usage)
      }
      #expect(try person.status()["state"] as? String == "serving")
      try person.unmount()
    }

    @Test(arguments: [-1, Int.min, 0, Int.max])
    func anyLimitOfTheQueueIsAnswered(limit: Int) throws {
      let person = try Person()
      try person.mount()
      let line = Array("{\"verb\":\"queue\",\"limit\":\(limit)}\n".utf8)
      guard case .queue(let answer) = try answer(person, to: line) else {
        Issue.record("the mount gave no answer")
        return
      }
      #expect(answer.records.isEmpty)
      #expect(try person.status()["state"] as? String == "serving")
      try person.unmount()
    }

    @Test func clientsThatSayNothingHoldNobodyUp() throws {
      let person = try Person()
      try person.mount()
      var silent: [CInt] = []
      for _ in 0..<40 { silent.append(dup(try connect(person).descriptor)) }
      defer { for descriptor in silent { close(descriptor) } }
      // Every thread is taken by a silent client; each is let go after its time.
      #expect(
        eventually {
          (try? person.bucketfs("status", person.mountpoint, timeout: 20).code) == 0
        })
      #expect(
        try File.contents(of: person.mountpoint + "/photos/a b.txt") == Array("hello".utf8))
      try person.unmount()
    }

    @Test func anotherUserIsRefused() throws {
      let person = try Person()
      try person.mount("-o", "allow_other")
      let nobody = [
        "/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
      ]
      chmod(person.scratch.path, 0o755)
      let verb = try person.run(
        nobody + [Person.products + "/bucketfs", "status", person.mountpoint])
      #expect(verb.code == 5, "\(verb.error)")
      #expect(verb.error.contains("served by another user (0)"))
      let all = try person.run(nobody + [Person.products + "/bucketfs", "status"])
      #expect(all.code == 1)
      #expect(all.error.contains("nothing is mounted"))
      // Even where the folders are open, the process asks who is there.
      let socket = try #require(person.socketPath)
      let program = """
        import socket
        s = socket.socket(socket.AF_UNIX)
        s.connect("\(socket)")
        try:
            s.sendall(b'{"verb":"offline"}\\n')
        except BrokenPipeError:
            pass  # refused already
        print(s.makefile().readline())
        """
      let client = nobody + ["/usr/bin/python3", "-c", program]
      #expect(try person.run(client).error.contains("PermissionError"))
      for folder in ["run", "run/bucketfs"] { chmod(person.scratch.path(folder), 0o755) }
      chmod(socket, 0o666)
      let open = try person.run(client)
      #expect(open.output.contains("this mount is served by another user (0)"))
      try person.unmount()
    }

    @Test func aProcessThatIsStoppedIsToldFromADeadOne() throws {
      let person = try Person()
      try person.mount()
      let pid = try person.pid()
      kill(pid, SIGSTOP)
      defer { kill(pid, SIGCONT) }
      let outcome = try person.bucketfs("status", person.mountpoint, "--json")
      #expect(outcome.code == 4)
      #expect(try outcome.object()["state"] as? String == "silent")
      kill(pid, SIGCONT)
      try person.unmount()
    }

    @Test func aStaleSocketElsewhereHidesNothing() throws {
      let person = try Person()
      try person.mount()
      try person.killMount()
      let stale = try #require(person.socketPath)
      let runtime = person.environment["XDG_RUNTIME_DIR"]
      // The next mount has another environment, and so another place for its socket.
      person.environment["XDG_RUNTIME_DIR"] = nil
      try person.mount()
      person.environment["XDG_RUNTIME_DIR"] = runtime
      #expect(FileManager.default.fileExists(atPath: stale))
      #expect(try person.status()["state"] as? String == "serving")
      try person.unmount()
    }

    @Test func aLongRuntimeFolderIsNoHindrance() throws {
      let person = try Person()
      let name = String(repeating: "long", count: 40)
      person.environment["XDG_RUNTIME_DIR"] = try person.scratch.folder(name)
      try person.mount()
      #expect(try person.status()["state"] as? String == "serving")
      let made = person.scratch.path(name + "/bucketfs")
      #expect(try FileManager.default.contentsOfDirectory(atPath: made).count == 1)
      try person.unmount()
    }

    @Test func aRuntimeFolderOfAnotherUserIsPassedOver() throws {
      let person = try Person()
      let folder = try person.scratch.folder("foreign")
      chown(folder, 65534, 65534)
      person.environment["XDG_RUNTIME_DIR"] = folder
      try person.mount()
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder).isEmpty)
      #expect(try person.status()["state"] as? String == "serving")
      try person.unmount()
    }
  }
}
