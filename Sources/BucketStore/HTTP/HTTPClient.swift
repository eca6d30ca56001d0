import CCurl
package import Platform

/// Sends HTTP requests over libcurl: one thread, one pool of connections, many transfers.
///
/// `perform` may be called from any thread but the client's own (never from a sink). The calling
/// thread waits; the net thread runs all transfers (libcurl-multi(3)), keeps connections open, and
/// may speak HTTP/2 where TLS offers it. Plain http goes to this machine alone, unless the options
/// say otherwise; certificates are always verified.
package final class HTTPClient: HTTPTransport {
  private let options: HTTPOptions
  private let mailbox = Mailbox()
  private let tally = Locked(HTTPCounters())
  private let pulses = TransferPulses()
  private let thread: Thread

  /// Starts the net thread.
  ///
  /// - Throws: `Errno` when the system refuses another thread.
  package init(_ options: HTTPOptions = HTTPOptions()) throws(Errno) {
    Self.startLibcurl
    self.options = options
    let mailbox = mailbox
    let tally = tally
    thread = try Thread(name: "net") { TransferLoop.run(mailbox, options, tally) }
  }

  deinit {
    mailbox.stop()
  }

  /// Ends the net thread and closes every connection; whoever waits gets `cancelled`.
  ///
  /// Not to be called from a sink, since it waits for the thread that runs it.
  package func shutdown() {
    mailbox.stop()
    thread.join()
  }

  /// Lets no later request use a connection that is open now.
  ///
  /// For a moment at which all may have died silently: another link, another address, a machine
  /// that slept.
  package func distrustConnections() {
    mailbox.distrust()
  }

  /// What has gone over the wire since the client was made.
  package var counters: HTTPCounters { tally.withLock { $0 } }

  package func perform(_ request: HTTPRequest, into sink: (any HTTPSink)?, _ call: Call)
    throws(StoreError) -> HTTPResponse
  {
    let target = try request.checked(insecure: options.insecure)
    let transfer = Transfer(request, to: target, sink: sink, call, pulses: pulses)
    let handler = call.cancellation.onCancel { transfer.cancel() }
    defer { call.cancellation.remove(handler) }
    try mailbox.submit(transfer)
    switch transfer.wait() {
    case .answered(let response): return response
    case .failed(let error): throw error
    case .left(.timeout):
      mailbox.abandon(transfer, timedOut: true)
      throw StoreError(.timeout, "\(target.host): no answer within \(call.timeout.text)")
    case .left(let kind):
      mailbox.abandon(transfer, timedOut: false)
      throw StoreError(kind, "\(target.host): the request was stopped")
    }
  }

  /// curl_global_init(3), once, before the first thread that uses libcurl.
  private static let startLibcurl: Void = {
    // Flags SSL and WIN32, libcurl's default. A failure shows again at every curl_multi_init(3).
    _ = curl_global_init(3)
  }()
}
