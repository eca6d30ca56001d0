import Glibc

exit(Program.run(Invocation.processArguments()).rawValue)
