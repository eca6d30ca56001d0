/* libfuse3 for Swift. FUSE_USE_VERSION fixes the API that the header offers (libfuse 3.12). */
#pragma once
#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* A function in libfuse 3.14, a macro in later releases, which Swift does not import. */
static inline struct fuse_session *bucketfs_session_new(struct fuse_args *args,
                                                        const struct fuse_lowlevel_ops *operations,
                                                        void *context) {
  return fuse_session_new(args, operations, sizeof *operations, context);
}

/* Before each write the kernel asks for the attribute security.capability, which doubles the
   requests of small writes, unless the file system says that it drops set-user-id bits and
   capabilities by itself: FUSE_HANDLE_KILLPRIV_V2 of linux/fuse.h, which libfuse 3.14 cannot say.
   A store's files never have either, so the word is put into the answer to FUSE_INIT on its way.
   Layouts and numbers are those of linux/fuse.h, the kernel's interface, which never change. */
enum {
  bucketfs_init_opcode = 26,
  bucketfs_init_flags_in = 40 + 12,
  bucketfs_init_flags_out = 12,
};
#define bucketfs_kills_privileges (1u << 28)

/* The number of a FUSE_INIT that is to be answered; 0 for none. */
static inline uint64_t *bucketfs_init_request(void) {
  static uint64_t number;
  return &number;
}

static inline ssize_t bucketfs_channel_read(int fd, void *buffer, size_t size, void *context) {
  (void)context;
  ssize_t count = read(fd, buffer, size);
  if (count >= bucketfs_init_flags_in + 4) {
    const unsigned char *bytes = (const unsigned char *)buffer;
    uint32_t opcode, flags;
    uint64_t number;
    memcpy(&opcode, bytes + 4, sizeof opcode);
    memcpy(&number, bytes + 8, sizeof number);
    memcpy(&flags, bytes + bucketfs_init_flags_in, sizeof flags);
    if (opcode == bucketfs_init_opcode && (flags & bucketfs_kills_privileges))
      __atomic_store_n(bucketfs_init_request(), number, __ATOMIC_RELEASE);
  }
  return count;
}

static inline ssize_t bucketfs_channel_write(int fd, struct iovec *parts, int count,
                                             void *context) {
  (void)context;
  uint64_t request = __atomic_load_n(bucketfs_init_request(), __ATOMIC_ACQUIRE);
  unsigned char answer[256];
  if (request != 0 && count == 2 && parts[0].iov_len == 16 &&
      parts[1].iov_len >= bucketfs_init_flags_out + 4 && parts[1].iov_len <= sizeof answer) {
    int32_t error;
    uint64_t number;
    memcpy(&error, (const unsigned char *)parts[0].iov_base + 4, sizeof error);
    memcpy(&number, (const unsigned char *)parts[0].iov_base + 8, sizeof number);
    if (error == 0 && number == request) {
      __atomic_store_n(bucketfs_init_request(), 0, __ATOMIC_RELEASE);
      memcpy(answer, parts[1].iov_base, parts[1].iov_len);
      uint32_t flags;
      memcpy(&flags, answer + bucketfs_init_flags_out, sizeof flags);
      flags |= bucketfs_kills_privileges;
      memcpy(answer + bucketfs_init_flags_out, &flags, sizeof flags);
      struct iovec changed[2] = {parts[0], {answer, parts[1].iov_len}};
      return writev(fd, changed, 2);
    }
  }
  return writev(fd, parts, count);
}

/* Lets the channel of a session that is mounted go through the two above. */
static inline int bucketfs_session_watch(struct fuse_session *session) {
  struct fuse_custom_io io = {.writev = bucketfs_channel_write, .read = bucketfs_channel_read};
  return fuse_session_custom_io(session, &io, fuse_session_fd(session));
}
