// The Python frame that holds an owner's time, in words, and what to do about it.
#pragma once
#include <string>
#include <string_view>

#include "lanescope/explain/facts.h"
#include "lanescope/explain/finding.h"
#include "lanescope/explain/owners.h"

namespace lanescope::explain {

// "<built-in method save of X object at 0x7f>" as "built-in save", "a/b.py(3): f" as "a/b.py:3 f".
std::string short_frame(std::string_view frame);

// True: a frame of torch, or a method of its tensors.
bool is_frame_of_torch(std::string_view frame);

// For an owner whose frame is work of the program itself, in more than one step; else empty. Not of torch or another
// library, and not waiting.
Sentence remedy_of_frame(const Facts& facts, const Owner& owner);

}  // namespace lanescope::explain
