import BucketStore
import Platform
import Testing

@Suite struct StoreErrorTests {
  private static let table: [(StoreError.Kind, Errno)] = [
    (.notFound, .noEntry), (.refused, .permission), (.sessionExpired, .permission),
    (.conflict, .io), (.exists, .exists), (.tooLarge, .fileTooLarge),
    (.typeRefused, .notSupported), (.unsupported, .notSupported), (.keyRefused, .invalid),
    (.throttled, .io), (.server, .io), (.damaged, .io), (.connectivity, .networkUnreachable),
    (.offline, .networkUnreachable), (.disabled, .networkDown), (.timeout, .timedOut),
    (.cancelled, .interrupted), (.noRoom, .noSpace),
  ]

  @Test func eachKindOfFailureHasItsErrno() {
    for (kind, errno) in Self.table { #expect(kind.errno == errno, "\(kind)") }
    #expect(Set(Self.table.map(\.0)) == Set(StoreError.Kind.allCases))
  }
}
