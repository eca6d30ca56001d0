import CCurl
import Glibc
import Platform

/// The settings of one transfer on a libcurl easy handle (curl_easy_setopt(3)). Net thread only.
///
/// Settings fail when libcurl was built without them or when memory ends; the first failure is kept
/// and ends the transfer before it starts.
struct EasyHandle {
  let easy: UnsafeMutableRawPointer
  private(set) var failure = CURLE_OK

  /// - Parameter easy: a new handle.
  init(_ easy: UnsafeMutableRawPointer) {
    self.easy = easy
  }

  mutating func set(_ option: CURLoption, _ value: Int) {
    note(bucketfs_set_long(easy, option, value))
  }

  mutating func set(_ option: CURLoption, _ value: String) {
    note(bucketfs_set_string(easy, option, value))
  }

  mutating func set(_ option: CURLoption, pointer: UnsafeMutableRawPointer?) {
    note(bucketfs_set_pointer(easy, option, pointer))
  }

  /// What holds for every request: safety, patience, connections.
  mutating func setCommon(_ options: HTTPOptions, connectTimeout: Span) {
    // Signals belong to the main thread, and time-outs of look-ups must not use SIGALRM.
    set(CURLOPT_NOSIGNAL, 1)
    // Without it a look-up that hangs is joined when its transfer ends: all transfers stood still
    // for 8 to 10 seconds.
    set(CURLOPT_QUICK_EXIT, 1)
    set(CURLOPT_PATH_AS_IS, 1)
    set(CURLOPT_FOLLOWLOCATION, 0)
    set(CURLOPT_PROTOCOLS_STR, "http,https")
    set(CURLOPT_HTTP09_ALLOWED, 0)
    set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
    // Never HTTP/2 over plain http: it failed for 3,999 of 4,000 transfers with 7.88.1.
    set(
      CURLOPT_HTTP_VERSION, options.http2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1)
    set(CURLOPT_SSL_VERIFYPEER, 1)
    set(CURLOPT_SSL_VERIFYHOST, 2)
    set(CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2)
    if let authorities = options.authorities {
      set(CURLOPT_CAINFO, authorities)
      note(bucketfs_set_string(easy, CURLOPT_CAPATH, nil))
    }
    set(CURLOPT_CONNECTTIMEOUT_MS, Int(clamping: connectTimeout.nanoseconds / 1_000_000) + 1)
    set(CURLOPT_TCP_KEEPALIVE, 1)
    set(CURLOPT_TCP_KEEPIDLE, 20)
    set(CURLOPT_TCP_KEEPINTVL, 10)
    set(CURLOPT_MAXAGE_CONN, options.idleSeconds)
    set(CURLOPT_BUFFERSIZE, 128 << 10)
    set(CURLOPT_USERAGENT, "bucketfs")
    // The kernel takes megabytes at once, and a slow line needs longer than a deadline to send
    // them: without a bound an upload would look silent while it makes its way.
    note(
      bucketfs_set_socket(easy) { _, socket, _ in
        var unsent: CInt = 128 << 10
        let size = socklen_t(MemoryLayout<CInt>.size)
        // Where it fails, the deadline is only less fair.
        _ = setsockopt(
          socket, CInt(IPPROTO_TCP), CInt(BUCKETFS_TCP_NOTSENT_LOWAT), &unsent, size)
        return CInt(CURL_SOCKOPT_OK)
      })
  }

  /// Keeps connections away that were made before a moment of doubt.
  ///
  /// libcurl counts ages in whole seconds, so a few younger ones are given up as well.
  mutating func distrust(connectionsBefore doubt: Instant) {
    let age = Int(Instant.now.since(doubt).seconds) - 1
    if age > 0 {
      set(CURLOPT_MAXLIFETIME_CONN, age)
    } else {
      set(CURLOPT_FRESH_CONNECT, 1)
    }
  }

  mutating func note(_ code: CURLcode) {
    if failure == CURLE_OK { failure = code }
  }
}
