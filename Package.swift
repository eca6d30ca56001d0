// swift-tools-version: 6.2
import PackageDescription

// Arrows point downward only: a target may depend on those listed above it.
// Platform knows nothing of ours; CFuse is imported by Mount alone, CSQLite by SQLite alone,
// CCurl and CExpat by BucketStore alone.
let package = Package(
  name: "bucketfs",
  targets: [
    .systemLibrary(name: "CLinux"),
    .systemLibrary(name: "CFuse", pkgConfig: "fuse3", providers: [.apt(["libfuse3-dev"])]),
    .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
    .systemLibrary(
      name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
    .systemLibrary(name: "CExpat", pkgConfig: "expat", providers: [.apt(["libexpat1-dev"])]),
    .systemLibrary(name: "CCrypto", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),

    .target(name: "Platform", dependencies: ["CLinux", "CCrypto"]),
    .target(name: "SQLite", dependencies: ["CSQLite", "Platform"]),
    .target(name: "BucketStore", dependencies: ["CCurl", "CExpat", "Platform"]),
    .target(name: "FileCache", dependencies: ["BucketStore", "Platform", "SQLite"]),
    .target(name: "PendingQueue", dependencies: ["BucketStore", "Platform"]),
    .target(
      name: "FileSystem", dependencies: ["BucketStore", "FileCache", "PendingQueue", "Platform"]),
    .target(name: "Mount", dependencies: ["CFuse", "FileSystem", "Platform"]),
    .executableTarget(
      name: "bucketfs",
      dependencies: [
        "BucketStore", "FileCache", "FileSystem", "Mount", "PendingQueue", "Platform",
      ]),

    .target(name: "StorageEmulator", dependencies: ["CCrypto", "Platform"]),
    .executableTarget(name: "bucketfs-emulator", dependencies: ["Platform", "StorageEmulator"]),

    .target(
      name: "TestSupport", dependencies: ["BucketStore", "Platform", "StorageEmulator"],
      path: "Tests/TestSupport"),
    .testTarget(name: "PlatformTests", dependencies: ["Platform", "TestSupport"]),
    .testTarget(name: "SQLiteTests", dependencies: ["Platform", "SQLite", "TestSupport"]),
    .testTarget(
      name: "BucketStoreTests",
      dependencies: ["BucketStore", "Platform", "StorageEmulator", "TestSupport"]),
    .testTarget(
      name: "FileCacheTests",
      dependencies: [
        "BucketStore", "FileCache", "Platform", "SQLite", "StorageEmulator", "TestSupport",
      ]),
    .testTarget(
      name: "PendingQueueTests",
      dependencies: ["BucketStore", "PendingQueue", "Platform", "StorageEmulator", "TestSupport"],
      exclude: ["Samples"]),
    .testTarget(
      name: "FileSystemTests",
      dependencies: [
        "BucketStore", "FileCache", "FileSystem", "PendingQueue", "Platform", "StorageEmulator",
        "TestSupport",
      ]),
    .testTarget(
      name: "StorageEmulatorTests", dependencies: ["Platform", "StorageEmulator", "TestSupport"]),
    .testTarget(
      name: "ProgramTests",
      dependencies: [
        "BucketStore", "Mount", "PendingQueue", "Platform", "StorageEmulator", "TestSupport",
        "bucketfs",
      ]),
    .testTarget(
      name: "EndToEndTests",
      dependencies: [
        "BucketStore", "Platform", "StorageEmulator", "TestSupport", "bucketfs",
        "bucketfs-emulator",
      ]),
    .testTarget(
      name: "MountTests",
      dependencies: [
        "BucketStore", "FileCache", "FileSystem", "Mount", "PendingQueue", "Platform",
        "TestSupport", "bucketfs", "bucketfs-emulator",
      ]),
  ],
  swiftLanguageModes: [.v6]
)

for target in package.targets where target.type != .system {
  target.swiftSettings = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .treatAllWarnings(as: .error),
  ]
}
