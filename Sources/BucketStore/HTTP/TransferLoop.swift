import CCurl
import Glibc
import Platform

/// The net thread: owns the multi handle and all easy handles, and runs the transfers.
///
/// Nothing of it is seen by another thread; letters come through the mailbox.
final class TransferLoop {
  private let mailbox: Mailbox
  private let options: HTTPOptions
  private let counters: Locked<HTTPCounters>
  private let multi: UnsafeMutableRawPointer
  private var queue: TransferQueue
  private var running: [UnsafeMutableRawPointer: Exchange] = [:]
  /// Connections made before are not used again.
  private var doubt: Instant?

  /// Runs until told to stop; then everything that waits has failed.
  static func run(_ mailbox: Mailbox, _ options: HTTPOptions, _ counters: Locked<HTTPCounters>) {
    guard let multi = curl_multi_init() else {
      let letters = mailbox.shut()
      for transfer in letters.submitted {
        transfer.finish(.failed(StoreError(.server, "out of memory for network transfers")))
      }
      return
    }
    TransferLoop(mailbox, options, counters, multi).run()
  }

  private init(
    _ mailbox: Mailbox, _ options: HTTPOptions, _ counters: Locked<HTTPCounters>,
    _ multi: UnsafeMutableRawPointer
  ) {
    self.mailbox = mailbox
    self.options = options
    self.counters = counters
    self.multi = multi
    queue = TransferQueue(slots: options.active)
  }

  private func run() {
    _ = bucketfs_multi_set_long(multi, CURLMOPT_MAXCONNECTS, options.active)
    mailbox.open(multi)
    while read(mailbox.collect()) {
      startNext()
      var count: CInt = 0
      curl_multi_perform(multi, &count)
      // A slot that came free is filled before sleeping.
      if collectFinished(), queue.canStart { continue }
      // Woken by sockets, by libcurl's own timers and by the mailbox.
      curl_multi_poll(multi, nil, 0, 60_000, nil)
    }
    stop()
  }

  /// - Returns: false when told to stop.
  private func read(_ letters: Mailbox.Letters) -> Bool {
    if letters.distrust { doubt = .now }
    for transfer in letters.submitted { queue.add(transfer) }
    for (transfer, timedOut) in letters.abandoned { letGo(transfer, timedOut: timedOut) }
    return !letters.stop
  }

  private func startNext() {
    while let transfer = queue.startNext() {
      guard !transfer.isClosed else {
        queue.finished(transfer)
        continue
      }
      transfer.start()
      do throws(StoreError) {
        try start(transfer)
      } catch {
        queue.finished(transfer)
        transfer.finish(.failed(error))
      }
    }
  }

  private func start(_ transfer: Transfer, afresh: Bool = false) throws(StoreError) {
    guard let easy = curl_easy_init() else {
      throw StoreError(.server, "out of memory for network transfers")
    }
    let exchange = Exchange(transfer, on: easy, counters: counters)
    do throws(StoreError) {
      try exchange.prepare(options, doubt: doubt, afresh: afresh)
      let code = curl_multi_add_handle(multi, easy)
      guard code == CURLM_OK else {
        throw StoreError(.server, String(cString: curl_multi_strerror(code)))
      }
    } catch {
      retire(easy)
      throw error
    }
    counters.withLock { $0.requests += 1 }
    running[easy] = exchange
  }

  /// - Returns: whether a transfer has ended.
  private func collectFinished() -> Bool {
    var hasFinished = false
    var left: CInt = 0
    while let message = curl_multi_info_read(multi, &left) {
      guard message.pointee.msg == CURLMSG_DONE, let easy = message.pointee.easy_handle,
        let exchange = running[easy]
      else { continue }
      let code = message.pointee.data.result
      if exchange.diedUnsent(code) {
        sendAgain(exchange)
      } else {
        let outcome = exchange.outcome(code)
        remove(exchange)
        exchange.transfer.finish(outcome)
      }
      hasFinished = true
    }
    return hasFinished
  }

  /// Sends a request once more, over a connection of its own, in the slot that it has.
  private func sendAgain(_ exchange: Exchange) {
    detach(exchange)
    do throws(StoreError) {
      try start(exchange.transfer, afresh: true)
    } catch {
      queue.finished(exchange.transfer)
      exchange.transfer.finish(.failed(error))
    }
  }

  /// Ends a transfer whose caller has left.
  private func letGo(_ transfer: Transfer, timedOut: Bool) {
    guard let exchange = running.values.first(where: { $0.transfer === transfer }) else {
      queue.remove(transfer)
      return
    }
    // Its connection may be dead, and with it those that were made before: later requests take new
    // ones. libcurl closes that of HTTP/1 with the transfer, but would put the next stream on that
    // of HTTP/2.
    if timedOut { doubt = .now }
    remove(exchange)
  }

  private func remove(_ exchange: Exchange) {
    detach(exchange)
    queue.finished(exchange.transfer)
  }

  private func detach(_ exchange: Exchange) {
    curl_multi_remove_handle(multi, exchange.easy)
    running[exchange.easy] = nil
    retire(exchange.easy)
  }

  private func retire(_ easy: UnsafeMutableRawPointer) {
    // Its connection stays open, since that belongs to the multi handle. The handle is not used
    // again: one whose look-up failed keeps its buffer through curl_easy_reset(3), and then refuses
    // CURLOPT_BUFFERSIZE with CURLE_BAD_FUNCTION_ARGUMENT (7.88.1), for ever.
    curl_easy_cleanup(easy)
  }

  private func stop() {
    let error = StoreError(.cancelled, "the network client has been shut down")
    for transfer in mailbox.shut().submitted { transfer.finish(.failed(error)) }
    for transfer in queue.removeAll() { transfer.finish(.failed(error)) }
    for exchange in Array(running.values) {
      remove(exchange)
      exchange.transfer.finish(.failed(error))
    }
    curl_multi_cleanup(multi)
  }
}
