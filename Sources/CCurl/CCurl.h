/* libcurl for Swift. */
#pragma once
#include <curl/curl.h>
