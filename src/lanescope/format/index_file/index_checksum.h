// The checksum of a section is the hash of the hashes of its blocks. So a check needs no more memory than
// one block, and several blocks can be checked at once, in any order.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "lanescope/base/string_pool.h"

namespace lanescope::format {

inline constexpr std::size_t kIndexBlockBytes = std::size_t{1} << 20;

// Gets the blocks of a section in order. Each has kIndexBlockBytes; only the last one may be shorter.
class IndexChecksum {
 public:
  void add_block(std::string_view block) { hashes_.push_back(hash_bytes(block)); }
  std::uint64_t value() const {
    return hash_bytes(
        {reinterpret_cast<const char*>(hashes_.data()), hashes_.size() * sizeof(std::uint64_t)});
  }

 private:
  std::vector<std::uint64_t> hashes_;
};

inline std::uint64_t index_checksum(std::string_view rows) {
  IndexChecksum checksum;
  for (; !rows.empty(); rows.remove_prefix(std::min(rows.size(), kIndexBlockBytes)))
    checksum.add_block(rows.substr(0, kIndexBlockBytes));
  return checksum.value();
}

}  // namespace lanescope::format
