// A question about names, asked once for each distinct one: events repeat few names.
#pragma once
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/model/trace.h"

namespace lanescope {

// `Wanted`: bool of a std::string_view, the same answer each time. Borrows the trace. One thread. One byte for each string of
// the trace.
template <typename Wanted>
class NamesWhere {
 public:
  NamesWhere(const Trace& trace, Wanted wanted)
      : trace_(trace), wanted_(std::move(wanted)), known_(trace.strings().size(), Known::kNot) {}

  bool operator()(SliceId slice) {
    const StringId name = trace_.slices().name[raw(slice)];
    if (name == kNone<StringId>) return wanted_(std::string_view());
    Known& known = known_[raw(name)];
    if (known == Known::kNot) known = wanted_(trace_.text(name)) ? Known::kYes : Known::kNo;
    return known == Known::kYes;
  }

 private:
  enum class Known : std::uint8_t { kNot, kNo, kYes };

  const Trace& trace_;
  Wanted wanted_;
  std::vector<Known> known_;  // by string
};

}  // namespace lanescope
