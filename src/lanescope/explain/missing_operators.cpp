#include "lanescope/explain/missing_operators.h"

#include <string_view>

#include "lanescope/explain/facts_memo.h"

namespace lanescope::explain {
namespace {

constexpr std::size_t kFewestKernels = 8;
constexpr std::int64_t kLargestThreadId = 4'194'304;  // of Linux; other numbers are addresses

bool is_operator(const Trace& trace, SliceId id) {
  return trace.kind(id) == CategoryKind::kCpuOp && !trace.name(id).starts_with("ProfilerStep");
}

bool has_operator(const Trace& trace, const Track& track) {
  for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i)
    if (is_operator(trace, SliceId{i})) return true;
  return false;
}

// Autograd waits for the next node of a backward pass, Gloo for the next collective.
bool has_nodes(const Trace& trace, const Track& track) {
  for (std::uint32_t i = track.first_slice; i < track.first_slice + track.slice_count; ++i)
    if (const std::string_view label = trace.name(SliceId{i});
        label.starts_with("autograd::engine::evaluate_function") || label.starts_with("gloo:") ||
        label.starts_with("mpi:"))
      return true;
  return false;
}

bool has_operators(const Trace& trace) {
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i)
    if (is_operator(trace, SliceId{i})) return true;
  return false;
}

// Programs that record no operators of PyTorch.
bool is_of_other_recorder(const Trace& trace) {
  const auto writer = trace.metadata_json("recordedBy");
  return writer && (writer->find("Nsight") != std::string_view::npos ||
                    writer->find("Perfetto") != std::string_view::npos);
}

bool launches_kernels_of_torch(const Facts& facts) {
  const Trace& trace = *facts.trace;
  std::size_t kernels = 0;
  for (const analysis::DeviceWork& work : facts.device().timeline.work) {
    const SliceId call = facts.links.launch_of[raw(work.slice)];
    if (call == kNone<SliceId> || trace.slices().track[raw(call)] != facts.main_thread ||
        trace.name(call).find("Graph") != std::string_view::npos ||
        trace.name(work.slice).find("at::native") == std::string_view::npos)
      continue;
    if (++kernels == kFewestKernels) return true;
  }
  return false;
}

MissingOperators find_missing_operators(const Facts& facts) {
  const Trace& trace = *facts.trace;
  if (!facts.main_device || facts.main_thread == kNone<TrackId> ||
      trace.import_stats().is_truncated() || is_of_other_recorder(trace) ||
      has_operator(trace, trace.track(facts.main_thread)) || !launches_kernels_of_torch(facts))
    return MissingOperators::kNone;
  return has_operators(trace) ? MissingOperators::kOfThread : MissingOperators::kAll;
}

}  // namespace

MissingOperators missing_operators(const Facts& facts) {
  return made_once<find_missing_operators>(facts);
}

Sentence missing_operators_note(const Facts& facts) {
  switch (missing_operators(facts)) {
    case MissingOperators::kNone:
      break;
    case MissingOperators::kAll:
      return say(
          "The trace has no operators, so it does not say what launches the work: record with "
          "ProfilerActivity.CPU, and threads that began earlier with "
          "_ExperimentalConfig(profile_all_threads=True).");
    case MissingOperators::kOfThread:
      return say(
          "The thread that launches the work has no operators in the trace: start torch.profiler "
          "in it, or with _ExperimentalConfig(profile_all_threads=True).");
  }
  return {};
}

bool is_worker_thread(const Facts& facts, TrackId thread) {
  const Trace& trace = *facts.trace;
  if (thread == kNone<TrackId> || trace.metadata_json("lanescope_merged_ranks") ||
      has_nodes(trace, trace.track(thread)))
    return false;
  if (thread == facts.main_thread && missing_operators(facts) == MissingOperators::kOfThread)
    return true;
  const Track& track = trace.track(thread);
  if (track.process == kNone<ProcessId>) return false;
  const Scalar& pid = trace.process(track.process).pid;
  const auto is_id = [](const Scalar& id) {
    return !id.is_text && id.number > 0 && id.number <= kLargestThreadId;
  };
  return is_id(pid) && is_id(track.tid) && pid.number != track.tid.number;
}

}  // namespace lanescope::explain
