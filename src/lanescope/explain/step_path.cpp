#include "lanescope/explain/step_path.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>

#include "lanescope/analysis/gaps.h"
#include "lanescope/explain/rules/device_time.h"
#include "lanescope/explain/rules/step_state.h"
#include "lanescope/explain/shared_graph.h"
#include "lanescope/simulate/predict.h"
#include "lanescope/simulate/step_graph.h"

namespace lanescope::explain {
namespace {

using simulate::PathKind;
using simulate::PathPiece;

bool is_loader_next(const Trace& trace, SliceId slice) {
  if (slice == kNone<SliceId>) return false;
  const std::string_view name = trace.name(slice);
  return name.find("DataLoader") != std::string_view::npos &&
         name.find("next") != std::string_view::npos;
}

PathKind host_kind(const Trace& trace, SliceId slice) {
  if (slice != kNone<SliceId> && is_api_call(trace.kind(slice))) return PathKind::kCall;
  return is_loader_next(trace, slice) ? PathKind::kData : PathKind::kHost;
}

StepPath path_of_thread(const Facts& facts) {
  StepPath path;
  path.thread = facts.cpu->thread;
  for (const analysis::Window& window : facts.steady_windows)
    facts.host->visit(path.thread, window.start_ns, window.end_ns,
                      [&](SliceId slice, std::int64_t from, std::int64_t to) {
                        path.pieces.push_back({from, to, host_kind(*facts.trace, slice), slice});
                      });
  return path;
}

// If a long delay lies between a launch and its work, the part inside the launch call is the call's.
template <typename Take>
void add_piece(const Facts& facts, const PathPiece& piece, Take take) {
  const Trace& trace = *facts.trace;
  const bool is_of_work = piece.kind == PathKind::kUnexplained && piece.slice != kNone<SliceId> &&
                          is_device_work(trace.kind(piece.slice));
  const SliceId launch = is_of_work ? facts.links.launch_of[raw(piece.slice)] : kNone<SliceId>;
  if (launch == kNone<SliceId> || trace.end_ns(launch) <= piece.start_ns ||
      trace.start_ns(launch) > piece.start_ns) {
    take(piece);
    return;
  }
  const std::int64_t end = std::min(piece.end_ns, trace.end_ns(launch));
  take(PathPiece{piece.start_ns, end, PathKind::kCall, launch});
  if (end < piece.end_ns) take(PathPiece{end, piece.end_ns, piece.kind, piece.slice});
}

// What ran in a gap at the edge of the recording was not recorded, so nobody owns it.
template <typename Take>
void leave_out_edge_gap(const analysis::Gap* edge, const PathPiece& piece, Take take) {
  if (!edge) {
    take(piece);
    return;
  }
  PathPiece before = piece, after = piece;
  before.end_ns = std::min(piece.end_ns, edge->start_ns);
  after.start_ns = std::max(piece.start_ns, edge->end_ns);
  if (before.end_ns > before.start_ns) take(before);
  if (after.end_ns > after.start_ns) take(after);
}

// A call that copies pageable memory, or waits until its copy is done, is the copying.
PathKind kind_of_call(const Facts& facts, const PathPiece& piece) {
  if (piece.kind != PathKind::kCall || piece.slice == kNone<SliceId>) return piece.kind;
  return facts.trace->api_call(piece.slice).does(api_effect::kCopies) &&
                 analysis::is_blocking_call(*facts.trace, facts.links, piece.slice)
             ? PathKind::kCopy
             : piece.kind;
}

bool can_be_replayed(const Facts& facts) {
  return facts.main_device && facts.host && facts.device().timeline.has_launches() &&
         !facts.selection.steady.empty() && !facts.selection.lacks_gpu_work;
}

PathKind work_kind(analysis::WorkClass work) {
  return work == analysis::WorkClass::kCopy            ? PathKind::kCopy
         : work == analysis::WorkClass::kCommunication ? PathKind::kCommunication
                                                       : PathKind::kCompute;
}

// What the main device ran in the steady steps; of work that overlaps, the earlier has the time.
std::vector<PathPiece> pieces_of_gpu(const Facts& facts) {
  std::vector<PathPiece> pieces;
  std::int64_t until_ns = 0;
  for (const analysis::DeviceWork* work : rules::steady_work(facts)) {
    const std::int64_t from = std::max(work->start_ns, until_ns);
    if (from >= work->end_ns) continue;
    pieces.push_back({from, work->end_ns, work_kind(work->work), work->slice});
    until_ns = work->end_ns;
  }
  return pieces;
}

// A delay that nothing explains, while the GPU works: a kernel may begin before the one before it ends, and other streams
// may have the GPU. What runs meanwhile has the time; `gpu` is disjoint and in order.
void add_unexplained(const std::vector<PathPiece>& gpu, const PathPiece& piece,
                     std::vector<PathPiece>& pieces) {
  std::int64_t from = piece.start_ns;
  auto work =
      std::upper_bound(gpu.begin(), gpu.end(), from,
                       [](std::int64_t time, const PathPiece& each) { return time < each.end_ns; });
  for (; work != gpu.end() && work->start_ns < piece.end_ns; ++work) {
    const std::int64_t start = std::max(from, work->start_ns);
    const std::int64_t end = std::min(piece.end_ns, work->end_ns);
    if (start > from) pieces.push_back({from, start, piece.kind, piece.slice});
    pieces.push_back({start, end, work->kind, work->slice});
    from = end;
  }
  if (from < piece.end_ns) pieces.push_back({from, piece.end_ns, piece.kind, piece.slice});
}

// Recording slows the CPU and not the GPU. Where only this keeps the GPU waiting, its work decides
// the step without the profiler.
bool only_recording_delays(const Facts& facts, const simulate::StepGraph& graph) {
  const auto& part = facts.wall.partition;
  return part.idle_ns * 10 > part.wall_ns &&
         is_gpu_bound(part.busy_ns(), simulate::steps_without_profiler_ns(graph));
}

// A CPU that is just as slow as the GPU can hold all of the path, although the GPU hardly waits: less
// work on the CPU would gain nothing then. `gpu_ns`: the GPU's part of all pieces.
bool is_hidden_by_gpu(const Facts& facts, std::int64_t gpu_ns, std::int64_t all_ns) {
  const auto& part = facts.wall.partition;
  return part.idle_ns * 20 <= part.wall_ns && gpu_ns * 2 < all_ns;
}

StepPath path_of_graph(const Facts& facts) {
  const std::shared_ptr<const simulate::StepGraph> shared = step_graph(facts);
  const simulate::StepGraph& graph = *shared;
  StepPath path;
  path.thread = graph.main_thread;
  if (only_recording_delays(facts, graph)) {
    path.pieces = pieces_of_gpu(facts);
    return path;
  }
  std::vector<PathPiece> gpu = pieces_of_gpu(facts);
  const analysis::Gap* edge = rules::find_edge_gap(facts);
  std::int64_t gpu_ns = 0, all_ns = 0;
  const simulate::Replay recorded = simulate::replay(graph, graph.edges);
  // There may be as many pieces as events, so they are kept once. The last comes first.
  simulate::visit_critical_pieces(graph, graph.edges, recorded, [&](const PathPiece& whole) {
    const std::int64_t length_ns = whole.end_ns - whole.start_ns;
    all_ns += length_ns;
    if (whole.kind == PathKind::kCompute || whole.kind == PathKind::kCopy ||
        whole.kind == PathKind::kCommunication)
      gpu_ns += length_ns;
    const auto first = static_cast<std::ptrdiff_t>(path.pieces.size());
    leave_out_edge_gap(edge, whole, [&](const PathPiece& kept) {
      add_piece(facts, kept, [&](const PathPiece& piece) {
        if (piece.kind == PathKind::kUnexplained)
          add_unexplained(gpu, piece, path.pieces);
        else
          path.pieces.push_back(piece);
      });
    });
    std::reverse(path.pieces.begin() + first, path.pieces.end());
  });
  if (is_hidden_by_gpu(facts, gpu_ns, all_ns)) {
    path.pieces = std::move(gpu);
    return path;
  }
  std::reverse(path.pieces.begin(), path.pieces.end());
  for (PathPiece& piece : path.pieces) piece.kind = kind_of_call(facts, piece);
  path.pieces = give_to_loader(facts, path.thread, path.pieces);
  return path;
}

}  // namespace

std::vector<PathPiece> give_to_loader(const Facts& facts, TrackId thread,
                                      const std::vector<PathPiece>& pieces) {
  std::vector<PathPiece> all;
  all.reserve(pieces.size());
  analysis::HostReader host(*facts.host);
  for (const PathPiece& piece : pieces) {
    if (piece.kind != PathKind::kHost || piece.slice != kNone<SliceId>) {
      all.push_back(piece);
      continue;
    }
    std::int64_t from = piece.start_ns;
    host.visit(thread, piece.start_ns, piece.end_ns,
               [&](SliceId slice, std::int64_t start, std::int64_t end) {
                 if (!is_loader_next(*facts.trace, slice)) return;
                 if (start > from) all.push_back({from, start, PathKind::kHost, kNone<SliceId>});
                 all.push_back({start, end, PathKind::kData, slice});
                 from = end;
               });
    if (from < piece.end_ns) all.push_back({from, piece.end_ns, PathKind::kHost, kNone<SliceId>});
  }
  return all;
}

std::optional<StepPath> find_step_path(const Facts& facts) {
  StepPath path;
  if (can_be_replayed(facts))
    path = path_of_graph(facts);
  else if (!facts.main_device && facts.cpu && facts.host)
    path = path_of_thread(facts);
  for (const PathPiece& piece : path.pieces) path.total_ns += piece.end_ns - piece.start_ns;
  if (path.total_ns <= 0) return std::nullopt;
  return path;
}

}  // namespace lanescope::explain
