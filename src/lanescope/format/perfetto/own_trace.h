// What lanescope writes into a Perfetto trace for itself: docs/formats/pftrace.md.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "lanescope/model/trace_builder.h"

namespace lanescope::format {

// An arrow in full; its tracks by their numbers in the file.
struct OwnFlow {
  Flow flow;
  std::uint64_t from_uuid = 0, to_uuid = 0;
};

class OwnTrace {
 public:
  // Reads the field that lanescope wrote for itself into a packet. Sets the builder's base time and
  // metadata.
  void read(std::string_view message, TraceBuilder& builder);
  // The scope of the instant that is in the same packet; nothing: not given.
  static std::optional<char> event_scope(std::string_view message);
  bool is_there() const { return is_there_; }
  std::int64_t shifted(std::int64_t ns) const {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(ns) +
                                     static_cast<std::uint64_t>(shift_));
  }
  // Name, category and id of the arrow with that number in the file. If lanescope wrote no kind for it,
  // its name is "flow" and its id is the number.
  Flow flow_of(std::uint64_t wire_id, TraceBuilder& builder) const;
  std::span<const OwnFlow> flows() const { return flows_; }

 private:
  void read_flow(std::string_view message, TraceBuilder& builder);

  bool is_there_ = false;
  std::int64_t shift_ = 0;
  std::vector<Flow> kinds_;
  std::vector<OwnFlow> flows_;
};

}  // namespace lanescope::format
