// The GPU source is a separate library next to this one. It is loaded when a session first asks for
// GPU activities, so a program without a GPU loads nothing.
#pragma once
#include <string>

namespace lanescope::record {

// Loads liblanescope_record_cupti.so, which registers itself. Empty: done; else one line that says
// why not. Milliseconds the first time; any thread.
std::string load_gpu_source();

}  // namespace lanescope::record
