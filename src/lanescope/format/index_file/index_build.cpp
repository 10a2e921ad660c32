#include <array>
#include <string_view>

#include "lanescope/base/string_pool.h"
#include "lanescope/format/index_file/index_layout.h"
#include "lanescope/format/index_file/sources_hash.h"  // made by hash_sources.cmake

namespace lanescope::format {

std::uint64_t index_build() {
  constexpr std::array<std::uint64_t, 8> kLayout{
      sizeof(void*),    sizeof(StringId), sizeof(TrackId), sizeof(CategoryId),
      sizeof(Metadata), sizeof(ApiCall),  sizeof(Flow),    kIndexVersion};
  static const std::uint64_t kBuild =
      hash_bytes({reinterpret_cast<const char*>(kLayout.data()), sizeof(kLayout)}) ^
      hash_bytes(LANESCOPE_SOURCES_HASH);
  return kBuild;
}

}  // namespace lanescope::format
