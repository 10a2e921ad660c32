#include "lanescope/ranks/sources_hash.h"  // made by hash_sources.cmake
#include "lanescope/ranks/summary_text.h"

namespace lanescope::ranks {

std::string summary_version() { return LANESCOPE_SOURCES_HASH; }

}  // namespace lanescope::ranks
