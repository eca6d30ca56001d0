import Glibc
import Platform
import StorageEmulator

/// The run of the program from its command line to the signal that ends it.
enum Program {
  static func run(_ arguments: [String]) -> CInt {
    if arguments.contains("--help") {
      print(Options.usage)
      return 0
    }
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, SIGINT)
    sigaddset(&signals, SIGTERM)
    // Before any thread starts: they inherit it, and only `sigwait` sees the signals.
    pthread_sigmask(SIG_BLOCK, &signals, nil)
    let emulator: StorageEmulator
    do throws(Options.Misuse) {
      emulator = try start(try Options(arguments))
    } catch {
      complain(error.sentence + "; see --help")
      return 2
    }
    var signal: CInt = 0
    sigwait(&signals, &signal)
    emulator.stop()
    return 0
  }

  private static func start(_ options: Options) throws(Options.Misuse) -> StorageEmulator {
    do throws(Errno) {
      let emulator = try StorageEmulator(options.configuration)
      if let file = options.usersFile { try readUsers(file, into: emulator) }
      if let folder = options.importFolder {
        for path in try emulator.importFolder(folder).refused {
          complain("\(path): the server takes no such name, so it is left out")
        }
      }
      let port = try emulator.start(port: options.port)
      if options.printsKeys {
        print("anon \(emulator.anonKey)\nservice \(emulator.serviceKey)")
        print("publishable \(emulator.publishableKey)\nsecret \(emulator.secretKey)")
      }
      print("ready http://127.0.0.1:\(port)")
      fflush(nil)
      return emulator
    } catch {
      throw Options.Misuse(sentence: "cannot start: \(error)")
    }
  }

  private static func readUsers(
    _ file: String, into emulator: StorageEmulator
  ) throws(Errno) {
    let bytes = try File.contents(of: file)
    do throws(Policies.Unreadable) {
      try emulator.readUsers(bytes)
    } catch {
      complain("\(file): \(error)")
      throw .invalid
    }
  }

  private static func complain(_ sentence: String) {
    let line = Array("bucketfs-emulator: \(sentence)\n".utf8)
    // A complaint that cannot be written has nowhere else to go.
    _ = write(STDERR_FILENO, line, line.count)
  }
}
