import FileSystem
import Platform
import TestSupport
import Testing

/// What the kernel holds when nothing is to be believed any longer.
@Suite struct DistrustTests {
  @Test func theKernelAsksAgainAboutWhatItKnows() throws {
    let fixture = try TreeFixture(maxAge: .seconds(3600))
    fixture.store.createBucket("b")
    fixture.store.put("b", "d/file", [1])
    let file = try fixture.inode("b/d/file")
    let folder = try fixture.inode("b/d")
    #expect(try fixture.find("b/d/new") == nil)
    fixture.tree.distrust()
    #expect(Set(fixture.kernel.renewed).isSuperset(of: [file, folder]))
    #expect(fixture.kernel.names == ["new"])
    fixture.tree.distrust()
    #expect(fixture.kernel.names == ["new"])
  }
}
