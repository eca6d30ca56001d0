@testable import FileSystem
import Platform
import Testing

@Suite struct NaturalNameTests {
  @Test(arguments: [
    ["1", "2", "10", "100"], ["IMG_2.jpg", "img_3.JPG", "IMG_0010.jpg"], ["a1b2", "a1b10", "a2b1"],
    ["a", "B", "c"], ["007", "8", "09"], ["", "0", "a"],
    ["x99999999999999999998", "x99999999999999999999"],
  ])
  func namesAreOrderedAsPeopleExpect(_ names: [String]) {
    let sorted = names.reversed().map { ByteString($0) }.sorted {
      NaturalName($0) < NaturalName($1)
    }
    #expect(sorted == names.map { ByteString($0) })
  }
}
