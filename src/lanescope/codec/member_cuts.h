// Where gzip members and zstd frames seem to end, found without unpacking them.
#pragma once
#include <cstddef>
#include <string_view>

#include "lanescope/codec/unpack.h"

namespace lanescope::codec {

// Returns the size of the fewest first members or frames of `packed` that have `at_least` bytes
// together. 0: no end was found.
// zstd: certain, because a frame contains the sizes of its blocks. With fewer than `at_least` bytes,
// returns the size of all whole frames. gzip: a guess. The cut is before bytes that look like the
// header of another member, but bytes inside a member can look like that, too.
// Cost: one pass over `packed`.
std::size_t find_member_cut(Packing packing, std::string_view packed, std::size_t at_least);

}  // namespace lanescope::codec
