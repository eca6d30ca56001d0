import Glibc

/// Users and groups of this device (passwd(5), group(5)).
enum Account {
  /// The number of a user's name; nil when there is none.
  static func user(named name: String) -> UInt32? { entry(user: name)?.uid }

  /// The number of a group's name; nil when there is none.
  static func group(named name: String) -> UInt32? {
    var record = Glibc.group()
    return withBuffer { buffer, size, result in
      getgrnam_r(name, &record, buffer, size, result)
    } read: { (found: UnsafeMutablePointer<Glibc.group>) in
      found.pointee.gr_gid
    }
  }

  /// The home folder that the system knows of a user; nil when there is none.
  static func home(of uid: UInt32) -> String? {
    var record = passwd()
    return withBuffer { buffer, size, result in
      getpwuid_r(uid, &record, buffer, size, result)
    } read: { (found: UnsafeMutablePointer<passwd>) in
      found.pointee.pw_dir.map { String(cString: $0) }
    }
  }

  private static func entry(user name: String) -> (uid: UInt32, gid: UInt32)? {
    var record = passwd()
    return withBuffer { buffer, size, result in
      getpwnam_r(name, &record, buffer, size, result)
    } read: { (found: UnsafeMutablePointer<passwd>) in
      (found.pointee.pw_uid, found.pointee.pw_gid)
    }
  }

  /// Calls one of the `_r` functions with a larger and larger buffer until the record fits, and
  /// reads the record while its strings are alive.
  private static func withBuffer<Record, Value>(
    _ call: (
      UnsafeMutablePointer<CChar>, Int, UnsafeMutablePointer<UnsafeMutablePointer<Record>?>
    ) -> CInt,
    read: (UnsafeMutablePointer<Record>) -> Value?
  ) -> Value? {
    var size = 1024
    while size <= 1 << 20 {
      let buffer = UnsafeMutablePointer<CChar>.allocate(capacity: size)
      defer { buffer.deallocate() }
      var found: UnsafeMutablePointer<Record>?
      let code = call(buffer, size, &found)
      if code == ERANGE {
        size *= 4
        continue
      }
      guard code == 0, let found else { return nil }
      return read(found)
    }
    return nil
  }
}
