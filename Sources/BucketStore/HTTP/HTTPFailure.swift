import CCurl
import Platform

/// What libcurl's error codes mean for a store (libcurl-errors(3)). The one table.
enum HTTPFailure {
  static func kind(of code: CURLcode) -> StoreError.Kind {
    switch code {
    case CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_CONNECT,
      CURLE_INTERFACE_FAILED, CURLE_PROXY, CURLE_NO_CONNECTION_AVAILABLE:
      .connectivity
    case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ISSUER_ERROR,
      CURLE_SSL_INVALIDCERTSTATUS, CURLE_SSL_SHUTDOWN_FAILED, CURLE_SSL_CLIENTCERT:
      .connectivity
    case CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_GOT_NOTHING, CURLE_SEND_FAIL_REWIND,
      CURLE_HTTP2, CURLE_HTTP2_STREAM, CURLE_AGAIN:
      .connectivity
    case CURLE_OPERATION_TIMEDOUT: .timeout
    case CURLE_PARTIAL_FILE: .damaged
    case CURLE_WRITE_ERROR, CURLE_READ_ERROR, CURLE_ABORTED_BY_CALLBACK: .cancelled
    // Settings of ours that cannot work, whatever the network does.
    case CURLE_URL_MALFORMAT, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CIPHER, CURLE_SSL_CERTPROBLEM:
      .refused
    // HTTP/0.9 is CURLE_UNSUPPORTED_PROTOCOL; what this table does not name is no proof that the
    // network is gone.
    default: .server
    }
  }

  /// - Parameters:
  ///   - detail: what libcurl wrote into its error buffer; may be empty.
  ///   - errno: what the system said to the last try to connect; nil where it said nothing.
  static func error(_ code: CURLcode, host: String, detail: String, errno: Errno? = nil)
    -> StoreError
  {
    let words: String
    switch code {
    case CURLE_COULDNT_RESOLVE_HOST: words = "its name cannot be resolved"
    case CURLE_COULDNT_CONNECT:
      words = "cannot be connected to" + (errno.map { ": \($0)" } ?? "")
    default: words = detail.isEmpty ? String(cString: curl_easy_strerror(code)) : detail
    }
    return StoreError(kind(of: code), "\(host): \(words)")
  }
}
