// Turns the details that many ranges share (what operators were called with) into arguments.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lanescope/codec/op_details.h"
#include "lanescope/format/spool/spool_index.h"
#include "lanescope/model/trace_builder.h"

namespace lanescope::format {

// Borrows both and reads the texts on demand. Counts damage.
class SpoolDetails {
 public:
  SpoolDetails(TraceBuilder& builder, const SpoolIndex& index) : builder_(builder), index_(index) {}
  // Adds the detail `id` to the arguments that builder.args() has begun. Decodes each detail once.
  void add_args(std::uint32_t id);

 private:
  struct Detail {
    std::vector<std::pair<const char*, StringId>> lists;
    std::vector<codec::DetailKeyword> keywords;
    StringId call_stack = kNone<StringId>;
  };
  const Detail& detail_of(std::uint32_t id);
  StringId call_stack_of(std::uint32_t id);

  TraceBuilder& builder_;
  const SpoolIndex& index_;
  std::unordered_map<std::uint32_t, Detail> details_;
  std::unordered_map<std::uint32_t, StringId> call_stacks_;  // by the innermost frame's node
};

}  // namespace lanescope::format
