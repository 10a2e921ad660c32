// What all files of stacks share: a line of folded stacks, and the frames of a speedscope file.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/analysis/python_flame.h"
#include "lanescope/model/trace.h"

namespace lanescope::report {

// A name in a folded line: ';' becomes '_', and characters that do not belong in a line become '?'.
std::string folded_name(std::string_view name);

// The nodes from the root to this one.
std::vector<std::uint32_t> stack_of(std::span<const analysis::FlameNode> nodes, std::uint32_t node);
// "outermost;...;innermost".
std::string folded_stack(const Trace& trace, std::span<const analysis::FlameNode> nodes,
                         std::uint32_t node);

// The frames of a speedscope file (https://www.speedscope.app/file-format-schema.json), numbered
// from 0 in the order of their ids.
class SpeedscopeFrames {
 public:
  explicit SpeedscopeFrames(std::size_t string_count) : frame_(string_count, kUnused) {}
  void add(StringId name) {
    if (name != kNone<StringId>) frame_[raw(name)] = 0;
  }
  // The file up to its profiles. Numbers the frames: no add() afterwards.
  std::string head(const Trace& trace);
  // The frame of a name that was added. A slice without a name: the last frame, which is nameless.
  std::uint32_t frame(StringId name) const {
    return name == kNone<StringId> ? count_ : frame_[raw(name)];
  }

 private:
  static constexpr std::uint32_t kUnused = ~std::uint32_t{0};
  std::vector<std::uint32_t> frame_;  // by string
  std::uint32_t count_ = 0;
};

}  // namespace lanescope::report
