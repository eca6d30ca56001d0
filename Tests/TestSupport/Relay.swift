package import Platform

/// Passes bytes on to another port of this machine, until told to swallow them.
///
/// A frozen connection stays open and says nothing more, as over a network that drops packets.
package final class Relay: Sendable {
  private struct State {
    var frozenUpTo = 0
    var isFrozen = false
    var isCut = false
    var open: [Int: RawConnection] = [:]
    var count = 0
  }

  private let state: Locked<State>
  private let server: RawServer
  private let kept: (any Sendable)?

  /// - Parameter kept: lives as long as the relay, such as the program behind the port.
  package init(to target: UInt16, keeping kept: (any Sendable)? = nil) throws(Errno) {
    self.kept = kept
    let state = Locked(State())
    self.state = state
    server = try RawServer { client in
      let (number, isCut) = state.withLock { state in
        state.count += 1
        if !state.isCut { state.open[state.count] = client }
        return (state.count, state.isCut)
      }
      guard !isCut else { return client.cut() }
      defer { state.withLock { _ = $0.open.removeValue(forKey: number) } }
      let isFrozen: @Sendable () -> Bool = {
        state.withLock { $0.isFrozen || number <= $0.frozenUpTo }
      }
      do throws(Errno) {
        let upstream = try RawConnection(to: target)
        let back = try Thread(name: "relay-back") {
          Self.pump(from: upstream, to: client, isFrozen)
          if !isFrozen() { client.cut() }
        }
        Self.pump(from: client, to: upstream, isFrozen)
        upstream.cut()
        back.join()
      } catch {
        // The target is gone: so is this connection.
      }
    }
  }

  package var port: UInt16 { server.port }

  /// Connections accepted so far.
  package var accepted: Int { server.accepted }

  /// Swallows everything on the connections that are open now; new ones work.
  package func freezeOpenConnections() {
    state.withLock { $0.frozenUpTo = $0.count }
  }

  /// Swallows everything, on new connections too, or ends that for the new ones.
  package func freeze(_ isFrozen: Bool) {
    state.withLock { state in
      state.isFrozen = isFrozen
      state.frozenUpTo = state.count
    }
  }

  /// Breaks every connection, those that are made later too, or ends that.
  package func cut(_ isCut: Bool) {
    let open = state.withLock { state in
      state.isCut = isCut
      return isCut ? Array(state.open.values) : []
    }
    for connection in open { connection.cut() }
  }

  package func stop() { server.stop() }

  private static func pump(
    from source: RawConnection, to target: RawConnection, _ isFrozen: () -> Bool
  ) {
    while let bytes = source.receive() {
      if !isFrozen() { target.send(bytes) }
    }
  }
}
