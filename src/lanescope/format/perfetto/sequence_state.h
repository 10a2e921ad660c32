// What a Perfetto trace says once for the packets that follow on the same sequence: numbers for
// texts, defaults, clocks. A packet may clear it.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lanescope/codec/protobuf_wire.h"
#include "lanescope/format/perfetto/by_iid.h"
#include "lanescope/format/perfetto/fields.h"
#include "lanescope/model/args.h"
#include "lanescope/model/trace_builder.h"

namespace lanescope::format {

struct GpuSpecification {
  StringId name = kNone<StringId>;
  bool is_compute = false;
};

using TextByIid = ByIid<StringId>;

struct AnnotationName {
  StringId text;
  ArgKey known;
};

struct LegacyThread {
  std::int64_t pid = 0, tid = 0;
  StringId name = kNone<StringId>;
};

struct SequenceState {
  TextByIid names, categories, texts;
  TextByIid lists;  // those of `texts` that are lists: strict JSON
  ByIid<AnnotationName> annotation_names;
  std::unordered_map<std::uint64_t, GpuSpecification> gpu_specifications;
  std::unordered_map<std::uint64_t, std::int64_t> counters;  // running values, by track uuid
  std::uint64_t default_clock = 0;                           // 0: none
  std::optional<std::uint64_t> default_track;
  std::vector<std::uint64_t> extra_tracks, extra_double_tracks;
  std::optional<LegacyThread> thread;
  std::int64_t legacy_us = 0;  // of timestamp_delta_us
};

// Adds what an InternedData message defines.
void intern(std::string_view message, SequenceState& state, TraceBuilder& builder);
// TracePacketDefaults: replaces what was there.
void set_defaults(std::string_view message, SequenceState& state);

}  // namespace lanescope::format
