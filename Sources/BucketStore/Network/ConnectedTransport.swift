package import Platform

/// An HTTP transport that sends nothing while network access is switched off.
///
/// The last gate, below every store: sign-in, token refresh and probes go through it too. It lets
/// requests pass while the network is offline, since one of them must find out that it is back.
package final class ConnectedTransport: HTTPTransport {
  private let transport: any HTTPTransport
  private let network: Network

  package init(_ transport: any HTTPTransport, network: Network) {
    self.transport = transport
    self.network = network
  }

  package func perform(_ request: HTTPRequest, into sink: (any HTTPSink)?, _ call: Call)
    throws(StoreError) -> HTTPResponse
  {
    let passage = try network.admit(call, evenOffline: true)
    do throws(StoreError) {
      let inner = Call(
        timeout: call.timeout, cancellation: passage.cancellation, pulse: call.pulse)
      let response = try transport.perform(request, into: sink, inner)
      _ = network.release(passage, nil)
      call.getsOn()
      return response
    } catch {
      throw network.release(passage, error) ?? error
    }
  }
}
