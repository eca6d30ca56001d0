/*
 * Linux calls that `import Glibc` does not show, since they stand behind _GNU_SOURCE or are macros.
 * Each is declared here under its own name with a prefix, bound to the C library's symbol.
 */
#pragma once
#include <stdint.h>

/* openat2(2) has no wrapper in glibc 2.36: the structure and the system call are given here. */
struct bucketfs_open_how {
  uint64_t flags;
  uint64_t mode;
  uint64_t resolve;
};
#define BUCKETFS_RESOLVE_NO_XDEV 0x01
#define BUCKETFS_RESOLVE_NO_MAGICLINKS 0x02
#define BUCKETFS_RESOLVE_NO_SYMLINKS 0x04
#define BUCKETFS_RESOLVE_BENEATH 0x08

extern long bucketfs_syscall(long number, ...) __asm__("syscall");

static inline int bucketfs_openat2(int directory, const char *path, struct bucketfs_open_how *how) {
  return (int)bucketfs_syscall(437, directory, path, how, sizeof *how);
}

/* pthread_setname_np(3), syncfs(2), pipe2(2), dup3(2), gettid(2): hidden behind _GNU_SOURCE. */
extern int bucketfs_setname(unsigned long thread, const char *name) __asm__("pthread_setname_np");
extern int bucketfs_syncfs(int descriptor) __asm__("syncfs");
extern int bucketfs_pipe2(int descriptors[2], int flags) __asm__("pipe2");
extern int bucketfs_dup3(int old, int target, int flags) __asm__("dup3");
extern int bucketfs_renameat2(int oldDirectory, const char *oldPath, int newDirectory,
                              const char *newPath, unsigned int flags) __asm__("renameat2");
extern int bucketfs_fallocate(int descriptor, int mode, long offset, long length)
    __asm__("fallocate");

/* getsockopt(SO_PEERCRED) needs struct ucred, which is hidden behind _GNU_SOURCE. */
struct bucketfs_ucred {
  int pid;
  unsigned int uid;
  unsigned int gid;
};
#define BUCKETFS_SO_PEERCRED 17

/* close_range(2): hidden behind _GNU_SOURCE. */
extern int bucketfs_close_range(unsigned int first, unsigned int last, int flags)
    __asm__("close_range");

/* environ(7) is a variable, which Swift 6 does not read from several threads. */
extern char **environ;
static inline char **bucketfs_environment(void) { return environ; }

/* fsetxattr(2), fgetxattr(2): glibc declares them in a header that `import Glibc` does not show. */
extern int bucketfs_fsetxattr(int descriptor, const char *name, const void *value,
                              unsigned long size, int flags) __asm__("fsetxattr");
extern long bucketfs_fgetxattr(int descriptor, const char *name, void *value, unsigned long size)
    __asm__("fgetxattr");
/* struct sockaddr_nl of netlink(7): its header would bring the kernel's sockaddr types along. */
struct bucketfs_sockaddr_nl {
  unsigned short family;
  unsigned short padding;
  unsigned int port;
  unsigned int groups;
};
#define BUCKETFS_AF_NETLINK 16
#define BUCKETFS_NETLINK_ROUTE 0
/* RTMGRP_LINK 1, _IPV4_IFADDR 10, _IPV4_ROUTE 40, _IPV6_IFADDR 100, _IPV6_ROUTE 400 (hex). */
#define BUCKETFS_RTMGRP_CHANGES 0x551
