/// Where one record of the queue stands.
package enum PendingState: String, Sendable, CaseIterable {
  /// Its writer has not closed it yet.
  case writing
  /// Complete on this device, to be sent.
  case waiting
  /// On its way to the store.
  case uploading
  /// Not sent, for a reason that the record names.
  case failed
}
