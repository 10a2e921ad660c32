// The GPU source is a library of its own beside this one, loaded when a session first asks for GPU
// activities, so that a program without a GPU loads nothing.
#pragma once
#include <string>

namespace lanescope::record {

// Loads liblanescope_record_cupti.so and lets it register itself. Empty: it is registered; else one
// line that says why not. Milliseconds the first time; any thread.
std::string load_gpu_source();

}  // namespace lanescope::record
