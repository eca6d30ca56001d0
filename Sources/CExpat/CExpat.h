/* Expat for Swift: a streaming XML parser. */
#pragma once
#include <expat.h>
