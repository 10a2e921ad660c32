// Arguments of an event that Perfetto does not show: docs/formats/pftrace.md#own-fields.
#pragma once
#include <cstdint>
#include <string_view>

#include "lanescope/codec/protobuf_wire.h"
#include "lanescope/format/perfetto/sequence_state.h"
#include "lanescope/model/trace_builder.h"

namespace lanescope::format {

// Adds these arguments to those that are open in builder.args(), each at its place among the others.
// `own`: the field of the event's packet that lanescope wrote for itself; borrowed.
class OwnArguments {
 public:
  explicit OwnArguments(std::string_view own) : field_(own) { find_next(); }
  // Called before each argument that the event itself has.
  void add_those_before_the_next(const SequenceState& state, TraceBuilder& builder);
  void add_all_left(const SequenceState& state, TraceBuilder& builder);

 private:
  void find_next();
  void add_one(const SequenceState& state, TraceBuilder& builder);

  codec::WireReader field_;
  bool is_there_ = false;
  std::uint64_t place_ = 0, added_ = 0;
  std::string_view annotation_;
};

}  // namespace lanescope::format
