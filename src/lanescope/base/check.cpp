#include "lanescope/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace lanescope {

void check_failed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "lanescope: internal error at %s:%d: expected %s\n", file, line, condition);
  std::abort();
}

}  // namespace lanescope
