/* libfuse3 for Swift. FUSE_USE_VERSION fixes the API that the header offers (libfuse 3.12). */
#pragma once
#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>
