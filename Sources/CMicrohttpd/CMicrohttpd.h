/* GNU libmicrohttpd for Swift. */
#pragma once
#include <microhttpd.h>
