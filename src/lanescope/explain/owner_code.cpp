#include "lanescope/explain/owner_code.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "lanescope/explain/enclosing_facts.h"
#include "lanescope/explain/rules/loader_waits.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/sampled_code.h"

namespace lanescope::explain {

using simulate::PathPiece;

namespace {

// A thread that waits for its next piece of work, as the DataLoader's pin-memory thread does: no cause of what another one does.
bool is_idle_wait(std::string_view event) {
  constexpr std::string_view kWaits[] = {"acquire of _thread.lock",
                                         "acquire of _thread.RLock",
                                         "<built-in method poll of select.",
                                         "<built-in method select of",
                                         "<built-in function sleep>",
                                         "<built-in method sleep of",
                                         "_utils/pin_memory.py(",
                                         "multiprocessing/connection.py(",
                                         "selectors.py("};
  return std::any_of(std::begin(kWaits), std::end(kWaits),
                     [&](std::string_view each) { return event.find(each) != event.npos; }) ||
         event.starts_with("threading.py(") || event.find("/threading.py(") != event.npos ||
         event.starts_with("queue.py(") || event.find("/queue.py(") != event.npos;
}

}  // namespace

// What other threads of the process do while this one runs code: it may wait for them.
void OwnerCode::add_other_threads(std::uint32_t owner, const PathPiece& piece) {
  constexpr std::int64_t kShortestNs = 50'000;
  const Trace& trace = *facts_.trace;
  if (piece.end_ns - piece.start_ns < kShortestNs || !facts_.host) return;
  const TrackId own =
      piece.slice == kNone<SliceId> ? path_.thread : trace.slices().track[raw(piece.slice)];
  if (own == kNone<TrackId>) return;
  for (std::uint32_t t = 0; t < trace.tracks().size(); ++t) {
    const Track& track = trace.track(TrackId{t});
    if (TrackId{t} == own || track.kind != TrackKind::kThread || track.slice_count == 0 ||
        track.process != trace.track(own).process)
      continue;
    facts_.host->visit(TrackId{t}, piece.start_ns, piece.end_ns,
                       [&](SliceId slice, std::int64_t from, std::int64_t to) {
                         if (slice != kNone<SliceId> && !is_idle_wait(trace.name(slice)))
                           elsewhere_[{owner, t, std::string(trace.name(slice))}] += to - from;
                       });
  }
}

TrackId OwnerCode::thread_of(const PathPiece& piece) const {
  const Trace& trace = *facts_.trace;
  return piece.slice == kNone<SliceId> || is_device_work(trace.kind(piece.slice))
             ? path_.thread
             : trace.slices().track[raw(piece.slice)];
}

// Samples of one thread are looked at: that of the path.
void OwnerCode::add_window(std::uint32_t owner, const PathPiece& piece) {
  if (thread_of(piece) == path_.thread && piece.start_ns < piece.end_ns)
    windows_[owner].push_back({piece.start_ns, piece.end_ns});
}

// Own time of the Python frames that began in a piece of code, on its thread.
void OwnerCode::add_frames(std::uint32_t owner, const PathPiece& piece) {
  const Trace& trace = *facts_.trace;
  if (!has_stacks_) return;
  const TrackId own = thread_of(piece);
  if (own == kNone<TrackId>) return;
  if (!frames_of_.contains(raw(own)))
    for (std::uint32_t i = 0; i < trace.slices().size(); ++i)
      if (trace.slices().track[i] == own && trace.kind(SliceId{i}) == CategoryKind::kPythonFunction)
        frames_of_[raw(own)].push_back(SliceId{i});
  const std::vector<SliceId>& frames = frames_of_[raw(own)];
  std::vector<SliceId> open;
  const auto clipped = [&](SliceId frame) {
    return std::min(trace.end_ns(frame), piece.end_ns) - trace.start_ns(frame);
  };
  for (auto at = std::lower_bound(
           frames.begin(), frames.end(), piece.start_ns,
           [&](SliceId frame, std::int64_t time) { return trace.start_ns(frame) < time; });
       at != frames.end() && trace.start_ns(*at) < piece.end_ns; ++at) {
    while (!open.empty() && trace.end_ns(open.back()) <= trace.start_ns(*at)) open.pop_back();
    frames_[{owner, raw(trace.slices().name[raw(*at)])}] += clipped(*at);
    if (!open.empty()) frames_[{owner, raw(trace.slices().name[raw(open.back())])}] -= clipped(*at);
    open.push_back(*at);
  }
}

namespace {

// "<built-in function linear>" is torch's, where aten::linear was recorded: not code of the program.
bool is_operator_of_torch(const Trace& trace, std::string_view frame) {
  constexpr std::string_view kFunction = "<built-in function ";
  if (!frame.starts_with(kFunction) || !frame.ends_with('>')) return false;
  frame.remove_prefix(kFunction.size());
  const std::string op = "aten::" + std::string(frame.substr(0, frame.size() - 1));
  for (std::uint32_t i = 0; i < trace.slices().size(); ++i)
    if (trace.kind(SliceId{i}) == CategoryKind::kCpuOp && trace.name(SliceId{i}) == op) return true;
  return false;
}

bool is_in_package(std::string_view frame, std::string_view package) {
  const std::size_t at = frame.find(package);
  return at == 0 || (at != frame.npos && frame[at - 1] == '/');
}

bool is_profilers_frame(std::string_view frame) {
  return is_in_package(frame, "torch/profiler/") || is_in_package(frame, "lanescope/_");
}

// The profiler's step() describes the job, for which it calls others.
bool is_called_by_profiler(const Facts& facts, SliceId slice) {
  const analysis::SliceNesting& nesting = nesting_with_frames(facts);
  for (; slice != kNone<SliceId>; slice = nesting.parent[raw(slice)])
    if (facts.trace->kind(slice) == CategoryKind::kPythonFunction &&
        is_profilers_frame(facts.trace->name(slice)))
      return true;
  return false;
}

bool is_torch_frame(std::string_view frame) {
  return is_in_package(frame, "torch/") ||
         (frame.starts_with("<built-in") && frame.find(" of torch.") != frame.npos);
}

}  // namespace

// Such as the end of backward() and the optimizer's Python around its range, or the profiler's own step().
void OwnerCode::tell_whose_code(Owner& owner, const std::vector<analysis::Window>& windows) const {
  if (!has_stacks_ || !facts_.host || owner.kind != OwnerKind::kCode) return;
  const Trace& trace = *facts_.trace;
  std::int64_t torch_ns = 0, profiler_ns = 0;
  for (const analysis::Window& window : windows)
    facts_.host->visit(
        path_.thread, window.start_ns, window.end_ns,
        [&](SliceId slice, std::int64_t from, std::int64_t to) {
          if (slice == kNone<SliceId> || trace.kind(slice) != CategoryKind::kPythonFunction) return;
          if (is_called_by_profiler(facts_, slice))
            profiler_ns += to - from;
          else if (is_torch_frame(trace.name(slice)))
            torch_ns += to - from;
        });
  owner.is_profilers = profiler_ns * 2 >= owner.total_ns;
  owner.is_torch_code = !owner.is_profilers && torch_ns * 2 >= owner.total_ns;
}

void OwnerCode::finish(std::vector<Owner>& owners) const {
  for (const auto& [key, time] : elsewhere_) {
    Owner& owner = owners[std::get<0>(key)];
    if (time <= owner.other_ns || time * 2 < owner.total_ns) continue;
    const Track& track = facts_.trace->track(TrackId{std::get<1>(key)});
    owner.other_ns = time;
    owner.other_thread = track.tid.is_text ? std::string(facts_.trace->text(track.tid.text))
                                           : std::to_string(track.tid.number);
    owner.other_event = std::get<2>(key);
  }
  for (const auto& [key, time] : frames_) {
    Owner& owner = owners[key.first];
    if (time <= owner.frame_ns || time * 2 < owner.total_ns) continue;
    const std::string_view frame = facts_.trace->text(StringId{key.second});
    if (is_operator_of_torch(*facts_.trace, frame)) continue;
    owner.frame_ns = time;
    owner.frame = frame;
  }
  const std::vector<analysis::Window> restarts = rules::repeated_worker_restarts(facts_);
  for (const auto& [index, windows] : windows_) {
    for (const analysis::Window& restart : restarts)
      for (const analysis::Window& window : windows)
        owners[index].restart_ns +=
            std::max<std::int64_t>(0, std::min(window.end_ns, restart.end_ns) -
                                          std::max(window.start_ns, restart.start_ns));
    tell_whose_code(owners[index], windows);
    auto code = find_sampled_code(*facts_.trace, path_.thread, rules::joined(windows));
    if (code && code->samples * 2 >= code->of) owners[index].sampled = *std::move(code);
  }
}

}  // namespace lanescope::explain
