#include "lanescope/explain/owner_frames.h"

#include <algorithm>
#include <array>

#include "lanescope/explain/owner_counts.h"
#include "lanescope/explain/sentences.h"
#include "lanescope/explain/user_code.h"
#include "lanescope/names/library_frames.h"

namespace lanescope::explain {
namespace {

constexpr std::string_view kMethod = "<built-in method ", kFunction = "<built-in function ";

// Built-in functions in which Python waits for something else.
constexpr std::array<std::string_view, 12> kWaiting = {"acquire", "get",      "join", "poll",
                                                       "read",    "readinto", "recv", "recv_into",
                                                       "select",  "sleep",    "wait", "waitpid"};

// "save" of "<built-in method save of X object at 0x7f>"; empty: not built in.
std::string_view built_in_name(std::string_view frame) {
  if (!frame.starts_with(kMethod) && !frame.starts_with(kFunction)) return {};
  frame.remove_prefix(frame.starts_with(kMethod) ? kMethod.size() : kFunction.size());
  return frame.substr(0, frame.find_first_of(" >"));
}

}  // namespace

bool is_frame_of_torch(std::string_view frame) {
  return frame.find("torch") != frame.npos || frame.find(" of Tensor object") != frame.npos ||
         frame.find(" of Parameter object") != frame.npos ||
         frame.find(" of type object") != frame.npos;
}

std::string short_frame(std::string_view frame) {
  const std::string_view built_in = built_in_name(frame);
  return built_in.empty() ? short_line(frame) : "built-in " + std::string(built_in);
}

Sentence remedy_of_frame(const Facts& facts, const Owner& owner) {
  if (owner.frame.empty() || is_frame_of_torch(owner.frame) ||
      (built_in_name(owner.frame).empty() && names::is_of_library(owner.frame)))
    return {};
  // Mostly in one of several steps: another process may have had the core.
  if (step_count(facts) >= 3 && owner.most_in_a_step_ns * 5 > owner.total_ns * 3) return {};
  const std::string_view built_in = built_in_name(owner.frame);
  if (std::find(kWaiting.begin(), kWaiting.end(), built_in) != kWaiting.end()) return {};
  return say("Take {} out of the step: a worker process, or only every few steps",
             {name(short_frame(owner.frame))});
}

}  // namespace lanescope::explain
