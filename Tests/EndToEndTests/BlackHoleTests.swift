import Foundation
import Glibc
import Platform
import TestSupport
import Testing

/// A network namespace of its own, with an emulator inside it whose packets can be dropped.
final class DarkNetwork {
  /// Whether this machine lets the tests make namespaces and drop packets.
  static let isPossible: Bool =
    getuid() == 0 && isThere("nsenter") && isThere("iptables") && isThere("ip")

  private static func isThere(_ program: String) -> Bool {
    ["/usr/bin/", "/usr/sbin/", "/sbin/"].contains { folder in
      FileManager.default.isExecutableFile(atPath: folder + program)
    }
  }

  let machine: Machine
  let port: Int
  private let name: String
  private let emulator: Process

  init(seed: (String) throws -> Void) throws {
    name = "bucketfs-test-\(getpid())-\(UInt32.random(in: 0...9999))"
    let inside = ["nsenter", "--net=/var/run/netns/\(name)"]
    let scratch = try Scratch()
    for command in [["ip", "netns", "add", name], inside + ["ip", "link", "set", "lo", "up"]] {
      let outcome = try Child.run(
        command, environment: ProcessInfo.processInfo.environment, in: scratch.path)
      try #require(outcome.code == 0, "\(command): \(outcome.error)")
    }
    let folder = try Scratch()
    try seed(folder.path)
    let data = try scratch.folder("emulator")
    emulator = Process()
    emulator.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    emulator.arguments =
      inside + [
        Child.products + "/bucketfs-emulator", "--data", data, "--print-keys", "--import",
        folder.path,
      ]
    let output = Pipe()
    emulator.standardOutput = output
    try emulator.run()
    var text = ""
    while !text.contains("ready http") {
      let data = output.fileHandleForReading.availableData
      try #require(!data.isEmpty, "the emulator ended: \(text)")
      text += String(decoding: data, as: UTF8.self)
    }
    let lines = text.split(separator: "\n")
    let key = try #require(lines.first { $0.hasPrefix("service ") }).dropFirst("service ".count)
    let ready = try #require(lines.first { $0.hasPrefix("ready ") })
    port = try #require(Int(ready.split(separator: ":").last ?? ""))
    machine = try Machine(prefix: inside, environment: ["SUPABASE_KEY": String(key)])
    keep = scratch
  }

  private let keep: Scratch

  deinit {
    emulator.terminate()
    emulator.waitUntilExit()
    do {
      _ = try Child.run(
        ["ip", "netns", "del", name], environment: ProcessInfo.processInfo.environment,
        in: "/tmp")
    } catch {
      Log.warning("network namespace \(name) stays: \(error)")
    }
  }

  var source: String { "supabase:http://127.0.0.1:\(port)" }

  /// Drops every packet to and from the store; nobody is told.
  func drop() throws { try rule("-A") }

  /// Lets packets through again.
  func restore() throws { try rule("-D") }

  private func rule(_ action: String) throws {
    for side in ["--dport", "--sport"] {
      let outcome = try machine.run(
        "iptables", action, "INPUT", "-p", "tcp", side, "\(port)", "-j", "DROP")
      try #require(outcome.code == 0, "iptables: \(outcome.error)")
    }
  }
}

/// Packets dropped, not refused: nothing outlasts the deadline, what is kept is served at once.
@Suite(
  .serialized,
  .enabled(if: DarkNetwork.isPossible, "needs root, ip, iptables and nsenter"))
struct BlackHoleTests {
  /// Runs many callers at once for some seconds and prints the longest of each kind in
  /// milliseconds.
  private static let storm = """
    import os, sys, threading, time
    mount, seconds = sys.argv[1], float(sys.argv[2])
    worst, slow = {}, []
    lock = threading.Lock()
    end = time.monotonic() + seconds
    def timed(kind, body):
        start = time.monotonic()
        try:
            body()
        except OSError:
            pass
        took = (time.monotonic() - start) * 1000
        with lock:
            worst[kind] = max(worst.get(kind, 0), took)
    def loop(kind, body):
        while time.monotonic() < end:
            timed(kind, body)
            time.sleep(0.01)
    def read(path):
        with open(path, 'rb') as file:
            file.read()
    n = [0]
    def cold():
        n[0] += 1
        read(f'{mount}/album/cold/{n[0] % 40}.jpg')
    jobs = [('stat', lambda: os.stat(mount + '/album/warm.jpg')),
            ('list', lambda: os.listdir(mount + '/album')),
            ('lookup', lambda: os.stat(mount + '/album/none')),
            ('df', lambda: os.statvfs(mount)),
            ('warm', lambda: read(mount + '/album/warm.jpg'))] + [('cold', cold)] * 8
    threads = [threading.Thread(target=loop, args=job, daemon=True) for job in jobs]
    for thread in threads: thread.start()
    for thread in threads: thread.join(seconds + 60)
    for kind, took in sorted(worst.items()): print(kind, int(took))
    """

  private func seed(_ folder: String) throws {
    let album = folder + "/album"
    try FileManager.default.createDirectory(
      atPath: album + "/cold", withIntermediateDirectories: true)
    try Data(repeating: 7, count: 200_000).write(to: URL(fileURLWithPath: album + "/warm.jpg"))
    for index in 0..<40 {
      try Data(repeating: 8, count: 50_000).write(
        to: URL(fileURLWithPath: "\(album)/cold/\(index).jpg"))
    }
  }

  @Test(.timeLimit(.minutes(5)))
  func noCallOutlastsTheDeadlineAndKeptFilesAreServedAtOnce() throws {
    let network = try DarkNetwork(seed: seed)
    let machine = network.machine
    try machine.mount(network.source, "max_age=1,timeout=4s")
    #expect(
      try machine.shell(#"ls -R "$M" >/dev/null && cat "$M/album/warm.jpg" | wc -c"#).output
        == "200000\n")
    sleep(2)
    try network.drop()

    let script = try machine.scratch.file("storm.py", Array(Self.storm.utf8))
    let first = try machine.run("python3", script, machine.mountpoint, "6")
    let firstWorst = worst(first)
    for (kind, took) in firstWorst { #expect(took < 6000, "\(kind) took \(took) ms") }
    // Who could be answered from what is kept was made to wait for a moment, once.
    for kind in ["stat", "list", "warm", "df"] {
      #expect(try #require(firstWorst[kind]) < 2500, "\(kind): \(firstWorst)")
    }

    let later = worst(try machine.run("python3", script, machine.mountpoint, "4"))
    #expect(Set(later.keys) == ["cold", "df", "list", "lookup", "stat", "warm"])
    for (kind, took) in later { #expect(took < 1000, "\(kind) took \(took) ms once it was known") }
    print("worst while it was found out: \(firstWorst), once it was known: \(later)")

    let start = Instant.now
    #expect(try machine.run("fusermount3", "-u", machine.mountpoint).code == 0)
    #expect(Instant.now.since(start) < .seconds(10))
  }

  @Test(.timeLimit(.minutes(5)))
  func theProgramCanBeKilledAndItsReadersWithIt() throws {
    let network = try DarkNetwork(seed: seed)
    let machine = network.machine
    try machine.mount(network.source, "max_age=1,timeout=30s")
    #expect(try machine.shell(#"ls -R "$M" >/dev/null"#).code == 0)
    let pid = try machine.pid()
    try network.drop()
    let readers = try Thread(name: "readers") {
      _ = (try? machine.shell(#"cat "$M"/album/cold/*.jpg >/dev/null"#, timeout: 40))?.code
    }
    sleep(1)
    #expect(kill(pid, SIGTERM) == 0)
    for _ in 0..<1000 where kill(pid, 0) == 0 { usleep(10_000) }
    #expect(kill(pid, 0) != 0)
    #expect(readers.join(until: .now + .seconds(20)))
    #expect(!machine.isMounted)
  }

  @Test(.timeLimit(.minutes(5)))
  func theNetworkIsFoundAgainByItself() throws {
    let network = try DarkNetwork(seed: seed)
    let machine = network.machine
    try machine.mount(network.source, "max_age=1,timeout=2s")
    #expect(try machine.shell(#"ls -R "$M" >/dev/null"#).code == 0)
    try network.drop()
    #expect(try machine.shell(#"cat "$M/album/cold/1.jpg""#).code != 0)
    #expect(try machine.status()["network"] as? String == "offline")
    try network.restore()
    var state = ""
    for _ in 0..<60 where state != "online" {
      sleep(1)
      state = try machine.status()["network"] as? String ?? ""
    }
    #expect(state == "online")
    #expect(try machine.shell(#"cat "$M/album/cold/1.jpg" | wc -c"#).output == "50000\n")
    try machine.unmount()
  }

  private func worst(_ outcome: Outcome) -> [String: Int] {
    #expect(outcome.code == 0, "storm: \(outcome.error)")
    return Dictionary(
      uniqueKeysWithValues: outcome.output.split(separator: "\n").compactMap { line in
        let words = line.split(separator: " ")
        guard words.count == 2, let took = Int(words[1]) else { return nil }
        return (String(words[0]), took)
      })
  }
}
