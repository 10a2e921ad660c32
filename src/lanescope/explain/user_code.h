// The place in the user's own program that a slice comes from, for sentences that must name it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "lanescope/explain/facts.h"
#include "lanescope/explain/finding.h"

namespace lanescope::explain {

// The most exact name that the trace has for the code around a slice: with Python stacks
// "at model.py:62 forward, nn.Module RMSNorm", the innermost line outside of torch and installed
// packages as python_line() finds it; else the innermost nn.Module or record_function range ("in
// range forward"); else the outermost operator ("in aten::linear", "in MmBackward0, backward pass")
// unless it is one that says nothing of its place, such as aten::to. GPU work stands for the call
// that launched it. Empty: the trace does not tell. O(slices of the thread).
enum class PlaceDetail : std::uint8_t { kOperators, kNoOperators };
Sentence user_code(const Facts& facts, SliceId slice, PlaceDetail detail = PlaceDetail::kOperators);

// The outermost nn.Module around a slice, else the outermost record_function range: what holds the
// whole of a step's work ("in nn.Module LlamaForCausalLM"). Empty: neither is recorded.
Sentence outer_user_code(const Facts& facts, SliceId slice);

// "a/b/c/model.py(62): forward" as "c/model.py:62 forward": how editors and tracebacks write a
// line. Other text stays as it is.
std::string short_line(std::string_view frame);

}  // namespace lanescope::explain
