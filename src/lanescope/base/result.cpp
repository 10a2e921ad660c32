#include "lanescope/base/result.h"

namespace lanescope {

const char* errc_name(Errc code) {
  switch (code) {
    case Errc::kIo:
      return "io";
    case Errc::kCorruptInput:
      return "corrupt-input";
    case Errc::kUnsupported:
      return "unsupported";
    case Errc::kInvalidArgument:
      return "invalid-argument";
    case Errc::kLimit:
      return "limit";
    case Errc::kUnavailable:
      return "unavailable";
  }
  return "unknown";
}

}  // namespace lanescope
