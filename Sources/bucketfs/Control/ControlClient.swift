import Glibc
import Mount
import Platform

/// Asks the process that serves a mount.
enum ControlClient {
  /// How long that process may give no sign of life.
  private static let silence = Span.seconds(8)

  /// Sends a request and waits for the answer.
  ///
  /// - Throws: `Complaint`, the mount's own or that it does not answer.
  static func ask(_ mount: MountEntry, _ request: ControlRequest) throws(Complaint) -> ControlReply
  {
    let reply = try converse(mount, request)
    if case .refused(let code, let sentence, let hint) = reply {
      throw Complaint(code, sentence, hint: hint)
    }
    return reply
  }

  private static func converse(_ mount: MountEntry, _ request: ControlRequest) throws(Complaint)
    -> ControlReply
  {
    let user = mount.user ?? geteuid()
    guard user == geteuid() || geteuid() == 0 else { throw .foreign(mount, user) }
    let connection: File
    do throws(Errno) {
      connection = try ControlSocket.connect(to: mount.path, servedBy: user)
    } catch {
      throw complaint(error, mount, user)
    }
    try check(connection, user, mount)
    do throws(Wire.Failure) {
      try Wire.send(JSON.encode(request), to: connection.descriptor, within: silence)
      let line = try Wire.receive(
        from: connection.descriptor, limit: 64 << 20, silence: silence)
      if let reply = JSON.decode(ControlReply.self, from: line) { return reply }
    } catch {
      if error == .silent { throw silent(mount) }
      throw Complaint(.failed, "\(mount.path): its process broke the connection off")
    }
    throw Complaint(
      .failed, "\(mount.path): its process gives an answer that is not understood",
      hint: "it may be of another version: unmount and mount again")
  }

  /// Makes sure that the other end is the process that serves the mount.
  private static func check(_ connection: borrowing File, _ user: UInt32, _ mount: MountEntry)
    throws(Complaint)
  {
    do throws(Errno) {
      let peer = try ControlSocket.peer(of: connection.descriptor)
      if peer == user { return }
      throw .notPermitted
    } catch {
      throw Complaint(.refused, "\(mount.path): its control socket is served by another user")
    }
  }

  private static func complaint(_ error: Errno, _ mount: MountEntry, _ user: UInt32) -> Complaint {
    switch error {
    case Errno(ECONNREFUSED): .dead(mount)
    case .again: silent(mount)
    case .noEntry:
      Complaint(
        .offline,
        "\(mount.path) cannot be talked to: its control socket "
          + "\(ControlSocket.name(of: mount.path)) is not in "
          + ControlSocket.places(of: user).joined(separator: ", "),
        hint: "set XDG_RUNTIME_DIR as it was when it was mounted, "
          + "and be the user who mounted it")
    case .permission: .foreign(mount, mount.user ?? 0)
    default: Complaint(.failed, "\(mount.path) cannot be talked to: \(error)")
    }
  }

  private static func silent(_ mount: MountEntry) -> Complaint {
    Complaint(.offline, "\(mount.path): its process does not answer")
  }
}

extension Complaint {
  /// The mount is somebody else's.
  static func foreign(_ mount: MountEntry, _ user: UInt32) -> Complaint {
    Complaint(
      .refused, "\(mount.path) is served by another user (\(user))",
      hint: "only that user and root may command it")
  }

  /// The process that served the mount is gone.
  static func dead(_ mount: MountEntry) -> Complaint {
    Complaint(
      .failed, "\(mount.path) is dead: the process that served it is gone",
      hint: "bucketfs unmount \(mount.path) takes it away, bucketfs mount mounts it anew")
  }
}
