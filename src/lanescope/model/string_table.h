// Each distinct text of a Trace, by its id. base/string_pool.h fills it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lanescope/base/ids.h"
#include "lanescope/base/string_pool.h"
#include "lanescope/model/column.h"

namespace lanescope {

// Views stay valid as long as the memory of `bytes`. Cost: 8 bytes a text, 8 to 16 in the slots,
// and the text itself.
template <template <typename> class List>
struct StringTable {
  List<char> bytes;            // all texts, one after the other, in order of their ids
  List<std::uint64_t> starts;  // text i is bytes [starts[i], starts[i + 1]); one more than texts
  List<std::uint32_t> slots;   // a hash table of ids; see StringPool::Parts

  std::size_t size() const { return starts.empty() ? 0 : starts.size() - 1; }
  [[gnu::always_inline]] std::string_view view(StringId id) const {
    const std::uint64_t* const start = starts.data() + raw(id);
    return {bytes.data() + start[0], start[1] - start[0]};
  }
  // kNone<StringId>: no such text. Cost: one hash and usually one comparison.
  StringId find(std::string_view text) const {
    if (slots.empty()) return kNone<StringId>;
    const std::size_t mask = slots.size() - 1;
    for (std::size_t slot = first_slot(text) & mask;; slot = (slot + 1) & mask) {
      if (slots[slot] == 0) return kNone<StringId>;
      const StringId id{slots[slot] - 1};
      if (view(id) == text) return id;
    }
  }
};

using StringColumns = StringTable<Column>;

}  // namespace lanescope
