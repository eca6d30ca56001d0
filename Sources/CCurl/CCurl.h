/*
 * libcurl for Swift. curl_easy_setopt, curl_easy_getinfo and curl_multi_setopt are variadic, and
 * Swift imports no variadic function: here is one typed call for each kind of argument.
 */
#pragma once
#include <curl/curl.h>

/* Numbers and switches (CURLOPTTYPE_LONG). */
static inline CURLcode bucketfs_set_long(CURL *easy, CURLoption option, long value) {
  return curl_easy_setopt(easy, option, value);
}

/* Sizes that may pass 2 GiB where long is short (CURLOPTTYPE_OFF_T). */
static inline CURLcode bucketfs_set_offset(CURL *easy, CURLoption option, curl_off_t value) {
  return curl_easy_setopt(easy, option, value);
}

/* Strings; libcurl copies them. */
static inline CURLcode bucketfs_set_string(CURL *easy, CURLoption option, const char *value) {
  return curl_easy_setopt(easy, option, value);
}

/* Contexts of callbacks, the error buffer: memory that libcurl keeps a pointer to. */
static inline CURLcode bucketfs_set_pointer(CURL *easy, CURLoption option, void *value) {
  return curl_easy_setopt(easy, option, value);
}

/* The list of request headers, which must live as long as the transfer. */
static inline CURLcode bucketfs_set_headers(CURL *easy, struct curl_slist *headers) {
  return curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
}

/* The three callbacks over bytes share one type: bytes, size of one, count, context. */
typedef size_t (*bucketfs_bytes_callback)(char *bytes, size_t size, size_t count, void *context);

static inline CURLcode bucketfs_set_callback(CURL *easy, CURLoption option,
                                             bucketfs_bytes_callback callback) {
  return curl_easy_setopt(easy, option, callback);
}

/* Goes back in the request's body, when libcurl sends it again over another connection. */
typedef int (*bucketfs_seek_callback)(void *context, curl_off_t offset, int origin);

static inline CURLcode bucketfs_set_seek(CURL *easy, bucketfs_seek_callback callback) {
  return curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, callback);
}

/* Settings of a socket before it connects. */
static inline CURLcode bucketfs_set_socket(CURL *easy, curl_sockopt_callback callback) {
  return curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, callback);
}

/* TCP_NOTSENT_LOWAT of tcp(7): glibc has it behind __USE_MISC, which Swift does not see. */
#define BUCKETFS_TCP_NOTSENT_LOWAT 25

/* Numbers that libcurl tells of a transfer. */
static inline CURLcode bucketfs_get_long(CURL *easy, CURLINFO info, long *value) {
  return curl_easy_getinfo(easy, info, value);
}

/* Numbers of the multi handle. */
static inline CURLMcode bucketfs_multi_set_long(CURLM *multi, CURLMoption option, long value) {
  return curl_multi_setopt(multi, option, value);
}
