// What `lanescope view` was asked for.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace lanescope::cli {

struct ViewFlags {
  std::string a, b, html, window;
  std::optional<std::int64_t> port, step;
  bool no_open = false, keep = false, perfetto = false, force = false, in_frame = false;
};

}  // namespace lanescope::cli
