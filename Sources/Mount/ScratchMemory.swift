import Glibc

/// Memory of one thread for the bytes of one answer: a read goes straight from the file to the
/// kernel through it.
///
/// It belongs to the thread (pthread_getspecific(3)), grows to the largest answer, is freed with
/// the thread, and is overwritten by the thread's next operation.
enum ScratchMemory {
  private static let key: pthread_key_t = {
    var key = pthread_key_t()
    let code = pthread_key_create(&key) { block in
      if let block { Unmanaged<Block>.fromOpaque(block).release() }
    }
    precondition(code == 0, "no room for a thread's own data")
    return key
  }()

  /// At least this many bytes.
  static func bytes(_ count: Int) -> UnsafeMutableRawBufferPointer {
    if let pointer = pthread_getspecific(key) {
      let block = Unmanaged<Block>.fromOpaque(pointer).takeUnretainedValue()
      if block.memory.count >= count {
        return UnsafeMutableRawBufferPointer(rebasing: block.memory[..<count])
      }
      Unmanaged<Block>.fromOpaque(pointer).release()
    }
    let block = Block(max(count, 1 << 17))
    pthread_setspecific(key, Unmanaged.passRetained(block).toOpaque())
    return UnsafeMutableRawBufferPointer(rebasing: block.memory[..<count])
  }

  private final class Block {
    let memory: UnsafeMutableRawBufferPointer

    init(_ count: Int) {
      memory = .allocate(byteCount: count, alignment: 4096)
    }

    deinit {
      memory.deallocate()
    }
  }
}
