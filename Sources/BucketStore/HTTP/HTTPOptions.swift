import CCurl

/// How an `HTTPClient` goes about its work.
package struct HTTPOptions: Sendable {
  /// Requests on the wire at a time, 1 to 64, and uploads up to a quarter more; the others wait in
  /// the client's own queue.
  ///
  /// More cost speed: libcurl walks all its handles at every step (4,000 at once ran at a third of
  /// the rate of 16 at a time).
  package var active: Int
  /// Lets plain http go to hosts other than this one: passwords and files can be read on the way.
  package var insecure: Bool
  /// A PEM file of the authorities to trust instead of the system's.
  package var authorities: String?
  /// Seconds that an idle connection is kept for the next request; below the server's 60.
  package var idleSeconds: Int
  /// Speaks HTTP/2 where TLS offers it, many transfers on one connection.
  ///
  /// Off by default with a libcurl older than 8.5: with 7.88.1, of two transfers of 1 MB that
  /// shared an HTTP/2 connection, one stood still for ever in five runs of eight.
  package var http2: Bool

  package init(
    active: Int = 16, insecure: Bool = false, authorities: String? = nil, idleSeconds: Int = 50,
    http2: Bool = HTTPOptions.canShareConnections
  ) {
    self.http2 = http2
    self.active = min(max(active, 1), 64)
    self.insecure = insecure
    self.authorities = authorities
    self.idleSeconds = max(idleSeconds, 1)
  }

  /// Whether the libcurl that runs is new enough to be trusted with HTTP/2.
  package static let canShareConnections: Bool = {
    guard let version = curl_version_info(CURLVERSION_ELEVENTH) else { return false }
    return version.pointee.version_num >= 0x08_05_00
  }()
}

/// What an `HTTPClient` has done since it was made.
package struct HTTPCounters: Sendable, Equatable {
  /// Requests handed to the network, failed ones included.
  package var requests: Int64 = 0
  /// Bytes of answers' bodies and headers.
  package var bytesIn: Int64 = 0
  /// Bytes of requests' bodies.
  package var bytesOut: Int64 = 0
}
