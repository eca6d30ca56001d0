/* libfuse3 for Swift. FUSE_USE_VERSION fixes the API that the header offers (libfuse 3.12). */
#pragma once
#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>

/* A function in libfuse 3.14, a macro in later releases, which Swift does not import. */
static inline struct fuse_session *bucketfs_session_new(struct fuse_args *args,
                                                        const struct fuse_lowlevel_ops *operations,
                                                        void *context) {
  return fuse_session_new(args, operations, sizeof *operations, context);
}
