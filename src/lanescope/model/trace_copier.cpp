#include "lanescope/model/trace_copier.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

namespace lanescope {
namespace {

bool is_shared_id(ArgKey key) {
  switch (key) {
    case ArgKey::kCorrelation:
    case ArgKey::kExternalId:
    case ArgKey::kRecordFunctionId:
    case ArgKey::kSequenceNumber:
    case ArgKey::kEventId:
    case ArgKey::kWaitOnEventCorrelation:
    case ArgKey::kWaitOnEventId:
    case ArgKey::kPythonId:
    case ArgKey::kPythonParentId:
    case ArgKey::kPythonModuleId:
      return true;
    default:
      return false;
  }
}

}  // namespace

TraceCopier::TraceCopier(const Trace& trace, TraceBuilder& builder,
                         std::function<Scalar(ProcessId)> pid_of)
    : trace_(trace),
      builder_(builder),
      pid_of_(std::move(pid_of)),
      tracks_(trace.tracks().size(), kNone<TrackId>) {}

StringId TraceCopier::copy(StringId id) {
  return id == kNone<StringId> ? id : builder_.intern(trace_.text(id));
}

Scalar TraceCopier::copy(const Scalar& scalar) {
  return scalar.is_text ? Scalar{true, 0, copy(scalar.text)} : scalar;
}

CategoryId TraceCopier::copy(CategoryId id) {
  const StringId text = trace_.categories()[raw(id)].text;
  return text == kNone<StringId> ? builder_.no_category() : builder_.category(trace_.text(text));
}

Scalar TraceCopier::pid(ProcessId id) {
  return pid_of_ ? pid_of_(id) : copy(trace_.process(id).pid);
}

void TraceCopier::copy_process(ProcessId id) {
  const Process& each = trace_.process(id);
  const Scalar own = pid(id);
  builder_.process(own);
  if (each.name != kNone<StringId>) builder_.set_process_name(own, copy(each.name));
  if (each.labels != kNone<StringId>) builder_.set_process_labels(own, copy(each.labels));
  if (each.sort_index) builder_.set_process_sort_index(own, *each.sort_index);
}

TrackId TraceCopier::track(TrackId id) {
  TrackId& known = tracks_[raw(id)];
  if (known != kNone<TrackId>) return known;
  const Track& each = trace_.track(id);
  const Scalar own = pid(each.process), tid = copy(each.tid);
  switch (each.kind) {
    case TrackKind::kThread:
      known = builder_.thread_track(own, tid);
      break;
    case TrackKind::kStream:
      known = builder_.stream_track(own, tid);
      builder_.set_stream_numbers(known, each.device, each.stream);
      break;
    case TrackKind::kAsync:
      known = builder_.async_track(own, trace_.text(each.series), tid);
      break;
    case TrackKind::kCounter:
      known = builder_.counter_track(own, trace_.text(each.name), trace_.text(each.series));
      break;
  }
  if (each.name != kNone<StringId> && each.kind != TrackKind::kCounter)
    builder_.set_track_name(known, copy(each.name));
  if (each.sort_index) builder_.set_track_sort_index(known, *each.sort_index);
  return known;
}

// None: stays as it is.
std::optional<std::int64_t> TraceCopier::shifted(std::optional<std::int64_t> id) {
  std::int64_t sum = 0;
  if (!id || *id <= 0 || __builtin_add_overflow(*id, id_shift_, &sum)) return std::nullopt;
  largest_id_ = std::max(largest_id_, sum);
  if (id_shift_ == 0) return std::nullopt;
  return sum;
}

ArgsId TraceCopier::copy(ArgsId id) {
  const ArgsView view = trace_.columns().args.view(id);
  if (view.empty()) return kNone<ArgsId>;
  ArgsBuilder& args = builder_.args();
  args.begin();
  for (std::size_t i = 0; i < view.size(); ++i) {
    const ArgField& field = view.field(i);
    const ArgKey known = arg_key(trace_.text(field.key));
    std::optional<std::int64_t> shared;
    if (is_shared_id(known) && (field.type == ArgType::kInt32 || field.type == ArgType::kInt64))
      shared = shifted(view.integer(&field));
    if (shared) {
      const bool is_short = *shared <= std::numeric_limits<std::int32_t>::max();
      args.add(copy(field.key), known, is_short ? ArgType::kInt32 : ArgType::kInt64,
               static_cast<std::uint64_t>(*shared));
      continue;
    }
    const bool is_text = field.type == ArgType::kString || field.type == ArgType::kJson;
    std::uint64_t bits = view.bits(field);
    if (is_text) bits = raw(copy(StringId{static_cast<std::uint32_t>(bits)}));
    args.add(copy(field.key), known, field.type, bits);
  }
  return args.end();
}

}  // namespace lanescope
