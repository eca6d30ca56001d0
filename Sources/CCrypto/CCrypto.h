/* OpenSSL's libcrypto for Swift: digests and HMAC. */
#pragma once
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
