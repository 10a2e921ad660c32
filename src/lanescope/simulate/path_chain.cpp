// Problem: the critical path of a step has thousands of pieces; which story do they tell?
//
// Idea: each piece lies on a thread or stream, and in events from the outside (a range, a module) to the
// inside (an operator, a call, a kernel). At depth 0, pieces in a row on one thread or stream become one
// row; at depth d, only those inside the same event of depth d. Rows that repeat (launch, kernel, wait,
// launch, ...) become one loop. The deepest depth is taken at which a screen still holds most of the time.
//
// Cost: O(pieces x depth).
//
// Example: 40 us of Python and operators, a kernel of 30 us that the CPU waits for, three times:
//   3 rounds of: thread, 120 us; stream, 90 us
#include "lanescope/simulate/path_chain.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "lanescope/analysis/steps.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/simulate/path_walk.h"

namespace lanescope::simulate {
namespace {

constexpr std::size_t kDeepest = 40;      // events around each other
constexpr std::size_t kLongestLoop = 12;  // rows of one round
constexpr double kLeastShown = 0.85;      // of the step's time, in the rows that are shown
constexpr std::size_t kFarTooMany = 100;
constexpr std::size_t kMostInAll = 3;  // times the rows that are shown
constexpr double kShortest = 0.005;    // of the step: a row that is shown
constexpr double kMost = 0.8;          // of a row, in one event: another depth says more
constexpr double kNearlyAll = 0.97;    // of a row, in one event: its pieces do not differ
constexpr double kLongCode = 0.03;     // of the step: code without events with a row of its own

struct Piece {
  std::int64_t start_ns = 0, end_ns = 0;
  PathKind kind{};
  SliceId slice = kNone<SliceId>;
  TrackId track = kNone<TrackId>;
  bool is_gpu = false;
  ChainLink link = ChainLink::kSamePlace;
  std::uint32_t first_event = 0, event_count = 0;  // of ChainMaker::events_, from the outside
  std::int64_t time_ns() const { return end_ns - start_ns; }
};

ChainLink link_of(EdgeKind edge) {
  switch (edge) {
    case EdgeKind::kLaunch:
      return ChainLink::kLaunch;
    case EdgeKind::kHostWait:
      return ChainLink::kWait;
    case EdgeKind::kQueue:
      return ChainLink::kFullQueue;
    case EdgeKind::kStream:
      return ChainLink::kStreamOrder;
    case EdgeKind::kStreamWait:
      return ChainLink::kOtherStream;
    case EdgeKind::kHandOver:
      return ChainLink::kHandOver;
    default:
      return ChainLink::kSamePlace;
  }
}

bool is_step_mark(const Trace& trace, SliceId slice) {
  return trace.name(slice).starts_with("ProfilerStep#");
}

// The steady step with the lower median of the lengths; steps.size(): none.
std::size_t median_step(const StepGraph& graph, const Replay& replay) {
  std::vector<std::size_t> steady;
  for (std::size_t i = 0; i < graph.steps.size(); ++i)
    if (graph.steps[i].steady) steady.push_back(i);
  if (steady.empty()) return graph.steps.size();
  sort_rows(steady.begin(), steady.end(), [&](std::size_t a, std::size_t b) {
    return replay.steps[a].length_ns() < replay.steps[b].length_ns();
  });
  return steady[(steady.size() - 1) / 2];
}

// Pieces in a row that become a row of the chain, or a round of it.
struct Run {
  std::uint32_t first = 0, last = 0;  // pieces
  ChainLink link = ChainLink::kNone;
  TrackId track = kNone<TrackId>;
  SliceId event = kNone<SliceId>;
  std::int64_t time_ns = 0;
};

// The runs `first`, `first` + `stride`, ... are one row.
struct FoldedRow {
  std::size_t first = 0, stride = 1, rounds = 1, loop = 0;
  std::int64_t time_ns = 0;
};

class ChainMaker {
 public:
  ChainMaker(const StepGraph& graph, const Replay& replay, const analysis::SliceNesting& nesting)
      : graph_(graph), replay_(replay), trace_(*graph.trace), nesting_(nesting) {}

  Chain run(std::size_t most_rows) {
    Chain chain;
    chain.step = median_step(graph_, replay_);
    if (chain.step == graph_.steps.size()) return chain;
    window_ = replay_.steps[chain.step];
    chain.length_ns = window_.length_ns();
    find_pieces();
    for (const Piece& piece : pieces_)
      deepest_ = std::max<std::size_t>(deepest_, piece.event_count);
    std::vector<Run> runs = runs_at(0);
    std::vector<FoldedRow> rows = folded(runs);
    for (std::size_t depth = 1; depth <= deepest_; ++depth) {
      std::vector<Run> deeper_runs = runs_at(depth);
      std::vector<FoldedRow> deeper = folded(deeper_runs);
      if (deeper.size() > kFarTooMany * most_rows) break;  // and further inside there are more
      if (deeper.size() > kMostInAll * most_rows ||
          shown_ns(deeper, most_rows) <
              static_cast<std::int64_t>(kLeastShown * static_cast<double>(chain.length_ns)))
        continue;
      runs = std::move(deeper_runs);
      rows = std::move(deeper);
    }
    const std::vector<bool> shown = shown_rows(rows, most_rows);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      chain.rows.push_back(row_of(rows[i], runs));
      chain.rows.back().is_shown = shown[i];
      if (shown[i]) continue;
      ++chain.other_rows;
      chain.other_ns += rows[i].time_ns;
    }
    return chain;
  }

 private:
  void find_pieces() {
    std::vector<TrackId> track_of(graph_.time_ns.size(), kNone<TrackId>);
    std::vector<bool> is_gpu(graph_.time_ns.size());
    for (const ThreadMoments& thread : graph_.threads)
      for (const std::uint32_t point : thread.points) track_of[point] = thread.track;
    for (const GpuWork& work : graph_.works)
      for (const std::uint32_t point : {work.start, work.end}) {
        track_of[point] = trace_.slices().track[raw(work.slice)];
        is_gpu[point] = true;
      }
    PathWalk(graph_, graph_.edges, replay_, [&](const WalkedPiece& walked) {
      if (!pieces_.empty() && walked.left_by != EdgeKind::kFixed)
        pieces_.back().link = link_of(walked.left_by);
      const std::int64_t start = std::max(walked.start_ns, window_.start_ns);
      const std::int64_t end = std::min(walked.end_ns, window_.end_ns);
      if (start >= end) return;
      Piece piece{
          start, end, walked.kind, walked.slice, track_of[walked.point], is_gpu[walked.point]};
      piece.link = link_of(walked.edge);
      add_events(piece);
      pieces_.push_back(piece);
    }).run();
    std::reverse(pieces_.begin(), pieces_.end());
  }

  // The events around it inside the step, from the outside. GPU work is in the operators that launched it, too.
  void add_events(Piece& piece) {
    piece.first_event = static_cast<std::uint32_t>(events_.size());
    SliceId slice = piece.slice;
    if (slice != kNone<SliceId> && piece.is_gpu) {
      events_.push_back(slice);
      const SliceId op = graph_.links->op_of[raw(slice)];
      const SliceId launch = graph_.links->launch_of[raw(slice)];
      slice = op != kNone<SliceId> ? op : launch;
    }
    while (slice != kNone<SliceId> && events_.size() - piece.first_event < kDeepest &&
           !is_step_mark(trace_, slice)) {
      events_.push_back(slice);
      slice = nesting_.parent[raw(slice)];
    }
    std::reverse(events_.begin() + piece.first_event, events_.end());
    piece.event_count = static_cast<std::uint32_t>(events_.size()) - piece.first_event;
  }

  SliceId event_at(const Piece& piece, std::size_t depth) const {
    const std::size_t count = std::min<std::size_t>(depth, piece.event_count);
    return count == 0 ? kNone<SliceId> : events_[piece.first_event + count - 1];
  }

  std::uint32_t name_of(SliceId event) const {
    return event == kNone<SliceId> || is_step_mark(trace_, event)
               ? kNoIndex
               : raw(trace_.slices().name[raw(event)]);
  }

  // Runs are equal if they are at the same place, in events of the same name.
  std::uint64_t key_of(TrackId track, SliceId event) const {
    return std::uint64_t{raw(track)} << 32 | name_of(event);
  }

  std::vector<Run> runs_at(std::size_t depth) const {
    std::vector<Run> runs;
    const auto long_code_ns =
        static_cast<std::int64_t>(kLongCode * static_cast<double>(window_.length_ns()));
    for (std::uint32_t i = 0; i < pieces_.size(); ++i) {
      const Piece& piece = pieces_[i];
      const SliceId event = event_at(piece, depth);
      const bool is_at_last = !runs.empty() && runs.back().track == piece.track;
      // Short code between two events belongs to the one before it.
      const bool joins =
          is_at_last && (name_of(event) == name_of(runs.back().event) ||
                         (event == kNone<SliceId> && piece.time_ns() < long_code_ns));
      if (!joins)
        runs.push_back({.first = i,
                        .last = i,
                        .link = runs.empty() ? ChainLink::kNone
                                : is_at_last ? ChainLink::kSamePlace
                                             : piece.link,
                        .track = piece.track,
                        .event = event});
      runs.back().last = i + 1;
      runs.back().time_ns += piece.time_ns();
    }
    return runs;
  }

  // Runs that repeat at once become the rows of a loop.
  std::vector<FoldedRow> folded(const std::vector<Run>& runs) const {
    std::vector<std::uint64_t> keys;
    keys.reserve(runs.size());
    for (const Run& run : runs) keys.push_back(key_of(run.track, run.event));
    // For how many runs from i on run j equals run j + period.
    std::array<std::vector<std::uint32_t>, kLongestLoop + 1> same;
    for (std::size_t period = 2; period <= kLongestLoop; ++period) {
      same[period].assign(runs.size() + 1, 0);
      for (std::size_t i = runs.size(); i-- > 0;)
        if (i + period < runs.size() && keys[i] == keys[i + period])
          same[period][i] = same[period][i + 1] + 1;
    }
    std::vector<FoldedRow> rows;
    std::size_t loops = 0;
    for (std::size_t i = 0; i < runs.size();) {
      std::size_t stride = 1, rounds = 1;
      for (std::size_t period = 2; period <= kLongestLoop; ++period)
        if (same[period][i] >= period && (1 + same[period][i] / period) * period > stride * rounds)
          stride = period, rounds = 1 + same[period][i] / period;
      loops += rounds > 1;
      for (std::size_t j = 0; j < stride; ++j) {
        FoldedRow row{
            .first = i + j, .stride = stride, .rounds = rounds, .loop = rounds > 1 ? loops : 0};
        for (std::size_t k = 0; k < rounds; ++k) row.time_ns += runs[i + j + k * stride].time_ns;
        rows.push_back(row);
      }
      i += stride * rounds;
    }
    return rows;
  }

  ChainRow row_of(const FoldedRow& folded_row, const std::vector<Run>& runs) const {
    const Run& first = runs[folded_row.first];
    ChainRow row{.link = first.link,
                 .track = first.track,
                 .is_gpu = pieces_[first.first].is_gpu,
                 .event = first.event,
                 .start_ns = pieces_[first.first].start_ns,
                 .time_ns = folded_row.time_ns,
                 .loop = folded_row.loop,
                 .rounds = folded_row.rounds};
    std::vector<std::uint32_t> pieces;
    for (std::size_t k = 0; k < folded_row.rounds; ++k) {
      const Run& run = runs[folded_row.first + k * folded_row.stride];
      for (std::uint32_t i = run.first; i < run.last; ++i) pieces.push_back(i);
    }
    row.pieces = pieces.size();
    Times times;
    for (const std::uint32_t i : pieces) {
      const Piece& piece = pieces_[i];
      if (piece.kind == PathKind::kDelay || piece.kind == PathKind::kUnexplained)
        row.delay_ns += piece.time_ns();
      else
        times[name_of(piece.slice)] += piece.time_ns();
    }
    row.parts = named(times, 3);
    row.inside = inside_of(pieces);
    return row;
  }

  using Times = std::unordered_map<std::uint32_t, std::int64_t>;  // by name

  std::vector<ChainPart> named(const Times& times, std::size_t most) const {
    std::vector<ChainPart> parts;
    for (const auto& [name, time_ns] : times)
      parts.push_back(
          {name == kNoIndex ? std::string() : std::string(trace_.text(StringId{name})), time_ns});
    sort_rows(parts.begin(), parts.end(), [](const ChainPart& a, const ChainPart& b) {
      return a.time_ns != b.time_ns ? a.time_ns > b.time_ns : a.name < b.name;
    });
    if (parts.size() > most) parts.resize(most);
    return parts;
  }

  std::vector<ChainPart> inside_of(const std::vector<std::uint32_t>& pieces) const {
    std::vector<ChainPart> differing;
    for (std::size_t depth = 1; depth <= deepest_; ++depth) {
      Times times;
      std::int64_t total_ns = 0, most_ns = 0;
      for (const std::uint32_t i : pieces) {
        std::int64_t& time_ns = times[name_of(event_at(pieces_[i], depth))];
        time_ns += pieces_[i].time_ns();
        total_ns += pieces_[i].time_ns();
        most_ns = std::max(most_ns, time_ns);
      }
      const double share = static_cast<double>(most_ns) / static_cast<double>(total_ns);
      if (share < kMost) return named(times, 4);
      if (share < kNearlyAll && differing.empty()) differing = named(times, 4);
    }
    return differing;
  }

  // The longest rows and loops, of equal ones the first. A loop is shown as a whole or not at all, and so that the
  // eye finds what matters, short ones are not shown.
  std::vector<bool> shown_rows(const std::vector<FoldedRow>& rows, std::size_t most_rows) const {
    struct Unit {
      std::size_t first = 0, count = 0;
      std::int64_t time_ns = 0;
    };
    std::vector<Unit> units;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (i == 0 || rows[i].loop == 0 || rows[i].loop != rows[i - 1].loop)
        units.push_back({.first = i});
      ++units.back().count;
      units.back().time_ns += rows[i].time_ns;
    }
    sort_rows(units.begin(), units.end(),
              [](const Unit& a, const Unit& b) { return a.time_ns > b.time_ns; });
    std::vector<bool> shown(rows.size());
    std::size_t count = 0;
    for (const Unit& unit : units) {
      const bool is_short =
          static_cast<double>(unit.time_ns) < kShortest * static_cast<double>(window_.length_ns());
      if (count + unit.count > most_rows || (is_short && count > 0)) continue;
      count += unit.count;
      for (std::size_t i = 0; i < unit.count; ++i) shown[unit.first + i] = true;
    }
    return shown;
  }

  std::int64_t shown_ns(const std::vector<FoldedRow>& rows, std::size_t most_rows) const {
    const std::vector<bool> shown = shown_rows(rows, most_rows);
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) sum += shown[i] ? rows[i].time_ns : 0;
    return sum;
  }

  const StepGraph& graph_;
  const Replay& replay_;
  const Trace& trace_;
  const analysis::SliceNesting& nesting_;
  analysis::Window window_;
  std::vector<Piece> pieces_;    // in order of time
  std::vector<SliceId> events_;  // of all pieces
  std::size_t deepest_ = 0;      // the most events around a piece
};

}  // namespace

const char* chain_link_name(ChainLink link) {
  constexpr const char* kNames[] = {"none",       "same_place",   "launch",       "wait",
                                    "full_queue", "stream_order", "other_stream", "hand_over"};
  return kNames[static_cast<std::size_t>(link)];
}

const char* chain_link_text(ChainLink link) {
  constexpr const char* kTexts[] = {
      "", "", "launched", "waits", "queue full", "stream order", "other stream", "hand-over"};
  return kTexts[static_cast<std::size_t>(link)];
}

Chain critical_chain(const StepGraph& graph, const Replay& replay,
                     const analysis::SliceNesting& nesting, std::size_t most_rows) {
  return ChainMaker(graph, replay, nesting).run(most_rows);
}

}  // namespace lanescope::simulate
