// Buffers that torch.cat makes again and again, each time longer by one piece: key-value caches.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lanescope/explain/facts.h"

namespace lanescope::explain::rules {

struct GrowingBuffer {
  std::vector<SliceId> calls;
  std::int64_t first = 0, last = 0, longest = 0, piece = 0;
  std::uint64_t growths = 0, other_changes = 0;
  bool grows() const { return growths >= 3 && growths >= 4 * other_changes; }
};

// By the shape of what these calls of aten::cat join, "[1, 8, *, 64]"; the calls are in order of time.
std::map<std::string, GrowingBuffer> buffers_by_shape(const Trace& trace,
                                                      const std::vector<SliceId>& calls);

// True: in the steady steps a buffer of three dimensions or more grows with each call, like a key-value cache that is joined
// anew for each word; or attention of one query reads one word more each time. Shapes then differ each time, and no CUDA graph
// can replay them. O(slices).
bool has_growing_buffer(const Facts& facts);

// True: four rounds or more look up a word, attend and choose the next one, without a backward pass, and no shapes are recorded. A
// cache that grows may be hidden in them. O(slices).
bool chooses_words_without_shapes(const Facts& facts);

}  // namespace lanescope::explain::rules
