import FileCache
@testable import FileSystem
import Platform
import Testing

@Suite struct OpenRunTests {
  @Test func nothingIsProposedBeforeThreeFilesWereOpenedInOrder() {
    var run = OpenRun()
    #expect(run.opened(5, of: 100).isEmpty)
    #expect(run.opened(6, of: 100).isEmpty)
    #expect(run.opened(7, of: 100) == 8..<10)
  }

  @Test func moreIsProposedTheLongerItGoesOnAndEachPlaceOnce() {
    var run = OpenRun()
    var proposed: [Int] = []
    var most = 0
    for place in 0..<100 {
      let next = run.opened(place, of: 100)
      #expect(next.isEmpty || next.lowerBound > place)
      most = max(most, (next.last ?? place) - place)
      proposed += next
    }
    #expect(proposed == Array(3..<100))
    #expect(most == OpenRun.mostAhead)
  }

  @Test func anOpenElsewhereEndsIt() {
    var run = OpenRun()
    for place in 0..<10 { _ = run.opened(place, of: 100) }
    #expect(run.opened(60, of: 100).isEmpty)
    #expect(run.length == 1)
    #expect(run.opened(61, of: 100).isEmpty)
    #expect(run.opened(62, of: 100) == 63..<65)
  }

  @Test func neighboursTheOtherWayRoundDoNotEndIt() {
    var run = OpenRun()
    for place in [0, 1, 3, 2, 5, 4, 7] { _ = run.opened(place, of: 100) }
    #expect(run.length >= 3)
    #expect(!run.opened(9, of: 100).isEmpty)
  }

  @Test func filesThatAreOpenedAgainChangeNothing() {
    var run = OpenRun()
    for place in [0, 1, 2] { _ = run.opened(place, of: 100) }
    let length = run.length
    for place in [2, 1, 0] { #expect(run.opened(place, of: 100).isEmpty) }
    #expect(run.length == length)
  }
}
