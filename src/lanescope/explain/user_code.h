// Names the place in the user's program that a slice comes from.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "lanescope/explain/facts.h"
#include "lanescope/explain/finding.h"
#include "lanescope/explain/frames_around.h"

namespace lanescope::explain {

// The most exact name for the code around a slice; for GPU work, around its launch. The first of:
//   "at model.py:62 forward, nn.Module RMSNorm"  innermost Python line outside torch and installed
//                                                packages (python_line()), with its nn.Module
//   "in forward (model.py:60), nn.Module RMSNorm"  the same where only its function is recorded
//   "in nn.Module RMSNorm"                       innermost nn.Module
//   "in range forward"                           innermost range of the program
//   "in aten::linear"                            outermost operator, only with kOperators; leaves out
//                                                operators that occur everywhere, such as aten::to
//   "in the backward pass of range forward"      for an operator of the backward pass, where the place of the
//                                                forward operator is known (rules::forward_of_node())
//   "in MmBackward0, backward pass"              where it is not
// Empty: the trace has none of these. O(slices of the thread).
enum class PlaceDetail : std::uint8_t { kOperators, kNoOperators };
Sentence user_code(const Facts& facts, SliceId slice, PlaceDetail detail = PlaceDetail::kOperators);

// A place without the word before it: "range forward" of "in range forward".
Sentence without_preposition(Sentence place);

// The outermost nn.Module around a slice ("in nn.Module LlamaForCausalLM"), else the outermost
// range of the program. Empty: neither is recorded.
Sentence outer_user_code(const Facts& facts, SliceId slice);

// "a/b/c/model.py(62): forward" as "c/model.py:62 forward": how editors and tracebacks write a
// line. Other text stays as it is.
std::string short_line(std::string_view frame);
// "c/model.py:62 forward" as "forward (c/model.py:62)": for a line that is the function's `def`, not
// the call. Other text stays as it is.
std::string function_first(std::string_view short_line);

// True: the program opened this range. torch, libraries and profilers open the others.
bool is_own_range(std::string_view range);
// True: it is the frame of a module ("nn.Module: RMSNorm_12"). Its class then is "RMSNorm".
bool is_module_frame(std::string_view frame);
std::string module_class(std::string_view frame);
// The class of the innermost nn.Module around a slice of a CPU thread; empty: none is recorded.
std::string module_class_around(const FramesAround& frames, SliceId slice);

}  // namespace lanescope::explain
