// Where gzip members and zstd frames seem to end, found without unpacking them.
#pragma once
#include <cstddef>
#include <string_view>

#include "lanescope/codec/unpack.h"

namespace lanescope::codec {

// The size of the first members or frames of `packed`, together at least `at_least` bytes where
// there are as many. 0: none is seen to end.
// zstd: certain, because a frame names the sizes of its blocks. gzip: a guess. The cut is before
// what looks like the header of another member, but bytes inside a member can look so, too.
// Cost: one pass over `packed`.
std::size_t find_member_cut(Packing packing, std::string_view packed, std::size_t at_least);

}  // namespace lanescope::codec
