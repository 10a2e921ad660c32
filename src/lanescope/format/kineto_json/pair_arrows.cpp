// Idea: an arrow depends only on points of its own category, id and name. So limits of these keys are drawn from samples, and a
// piece is what lies between two of them: a stretch of each sorted run. Threads copy a piece together, sort and join it; the arrows
// of the pieces go to the builder in the order of the pieces.
//   runs: starts 1 2 3 4 5 6 and ends 1 3 2 4 6 5; a limit at 4
//   pieces: 1 2 3 with 1 3 2, and 4 5 6 with 4 6 5
#include "lanescope/format/kineto_json/pair_arrows.h"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include "lanescope/base/share_work.h"
#include "lanescope/model/sorted_runs.h"

namespace lanescope::format {
namespace {

// At equal times, starts come first and ends last.
int phase_rank(char phase) { return phase == 's' ? 0 : phase == 't' ? 1 : 2; }

bool key_less(const ArrowPoint& a, const ArrowPoint& b) {
  if (a.category != b.category) return a.category < b.category;
  if (a.id_is_text != b.id_is_text) return b.id_is_text;
  if (a.id_value != b.id_value) return a.id_value < b.id_value;
  return a.name < b.name;
}

bool same_key(const ArrowPoint& a, const ArrowPoint& b) {
  return a.id_value == b.id_value && a.category == b.category && a.id_is_text == b.id_is_text &&
         a.name == b.name;
}

using PointRun = std::span<const ArrowPoint>;

struct PieceArrows {
  std::vector<Flow> arrows;
  std::uint64_t orphan_count = 0;
  bool is_done = false;
};

Flow arrow_between(const ArrowPoint& from, const ArrowPoint& to) {
  Flow flow;
  flow.id_is_text = from.id_is_text;
  flow.id_value = from.id_value;
  flow.name = from.name;
  flow.category = from.category;
  flow.from_track = from.track;
  flow.from_ns = from.time_ns;
  flow.to_track = to.track;
  flow.to_ns = to.time_ns;
  flow.binds_enclosing = to.binds_enclosing;
  return flow;
}

// The points of one key, in order.
void join_key(PointRun points, PieceArrows& out) {
  const ArrowPoint* from = nullptr;
  bool used = true;
  // An end that precedes its only start (clock skew between CPU and GPU) still belongs to it.
  const auto start = std::find_if(points.begin(), points.end(),
                                  [](const ArrowPoint& point) { return point.phase == 's'; });
  const ArrowPoint* const first_start = start == points.end() ? nullptr : &*start;
  for (const ArrowPoint& point : points) {
    if (point.phase == 's') {
      if (!used && from) ++out.orphan_count;
      if (from != &point) used = false;
      from = &point;
      continue;
    }
    const bool early = from == nullptr;
    const ArrowPoint* source = early ? first_start : from;
    if (!source) {
      ++out.orphan_count;
      continue;
    }
    out.arrows.push_back(arrow_between(*source, point));
    used = true;
    if (early) from = first_start;  // counted as used when its turn comes
    // At the time of its source it is only reached: an arrow goes on from a later point.
    if (point.phase == 't' && point.time_ns != source->time_ns) from = &point;
  }
  if (!used && from) ++out.orphan_count;
}

class ArrowPairing {
 public:
  ArrowPairing(std::vector<ArrowPoint>& points, TraceBuilder& builder, unsigned threads,
               std::size_t piece_points)
      : points_(points), builder_(builder), threads_(threads), piece_points_(piece_points) {}

  void run() {
    rank_tracks();
    find_runs();
    draw_limits();
    pieces_.resize(limits_.size() + 1);
    share_work(pieces_.size(), threads_, [this](std::size_t piece) { join_piece(piece); });
  }

 private:
  // The order in the file must not matter: the same events in another order give the same trace. So points of one time and phase
  // are in order of their pid and tid.
  bool is_earlier(const ArrowPoint& a, const ArrowPoint& b) const {
    if (a.time_ns != b.time_ns) return a.time_ns < b.time_ns;
    if (a.phase != b.phase) return phase_rank(a.phase) < phase_rank(b.phase);
    if (a.track != b.track && rank_[raw(a.track)] != rank_[raw(b.track)])
      return rank_[raw(a.track)] < rank_[raw(b.track)];
    return a.event_index < b.event_index;
  }
  auto in_order() const {
    return [this](const ArrowPoint& a, const ArrowPoint& b) {
      return same_key(a, b) ? is_earlier(a, b) : key_less(a, b);
    };
  }

  // The place of each track among all, by pid and tid, and the stream that is meant where a thread is named.
  void rank_tracks() {
    const std::span<const Track> tracks = builder_.tracks();
    const auto scalar_key = [this](const Scalar& scalar) {
      return std::tuple(scalar.is_text, scalar.number,
                        scalar.is_text ? builder_.text(scalar.text) : std::string_view());
    };
    using PlaceKey =
        decltype(std::pair(scalar_key(tracks.front().tid), scalar_key(tracks.front().tid)));
    std::vector<std::pair<PlaceKey, std::uint32_t>> places;
    for (std::uint32_t i = 0; i < tracks.size(); ++i) {
      places.emplace_back(
          std::pair(scalar_key(builder_.process_of(TrackId{i}).pid), scalar_key(tracks[i].tid)), i);
      const auto stream = tracks[i].kind == TrackKind::kThread
                              ? builder_.find_stream(tracks[i].process, tracks[i].tid)
                              : std::nullopt;
      meant_.push_back(stream.value_or(TrackId{i}));
    }
    std::sort(places.begin(), places.end());
    rank_.resize(tracks.size());
    for (std::size_t i = 1; i < places.size(); ++i)
      rank_[places[i].second] =
          rank_[places[i - 1].second] + (places[i].first != places[i - 1].first ? 1 : 0);
  }

  // A part of the points for each thread. The bounds between parts are bounds of runs, too.
  void find_runs() {
    const std::size_t parts =
        std::min<std::size_t>(std::max(threads_, 1u), points_.size() / piece_points_ + 1);
    std::vector<std::vector<PointRun>> runs(parts);
    std::vector<std::size_t> ends(parts);
    share_work(parts, threads_, [&](std::size_t part) {
      const auto begin =
                     points_.begin() + static_cast<std::ptrdiff_t>(points_.size() * part / parts),
                 end = points_.begin() +
                       static_cast<std::ptrdiff_t>(points_.size() * (part + 1) / parts);
      for (auto at = begin; at != end; ++at) {
        if (const TrackId meant = meant_[raw(at->track)]; meant != at->track) at->track = meant;
        ends[part] += at->phase != 's';
      }
      const auto bounds = order_into_runs(begin, end, in_order());
      for (std::size_t i = 1; i < bounds.size(); ++i)
        runs[part].emplace_back(bounds[i - 1], bounds[i]);
    });
    std::size_t arrows = 0;
    for (std::size_t part = 0; part < parts; ++part) {
      runs_.insert(runs_.end(), runs[part].begin(), runs[part].end());
      arrows += ends[part];
    }
    builder_.expect_flows(arrows);
  }

  // One sample for each 16th of a piece, so that pieces are about equal, whatever the runs are.
  void draw_limits() {
    constexpr std::size_t kSamplesOfPiece = 16;
    const std::size_t distance = std::max<std::size_t>(piece_points_ / kSamplesOfPiece, 1);
    std::vector<ArrowPoint> samples;
    for (const PointRun run : runs_)
      for (std::size_t i = distance / 2; i < run.size(); i += distance) samples.push_back(run[i]);
    std::sort(samples.begin(), samples.end(), key_less);
    for (std::size_t i = kSamplesOfPiece; i < samples.size(); i += kSamplesOfPiece)
      if (limits_.empty() || key_less(limits_.back(), samples[i])) limits_.push_back(samples[i]);
  }

  void join_piece(std::size_t piece) {
    std::vector<PointRun> parts;
    std::size_t count = 0;
    for (const PointRun run : runs_) {
      const auto begin =
          piece == 0 ? run.begin()
                     : std::lower_bound(run.begin(), run.end(), limits_[piece - 1], key_less);
      const auto end = piece == limits_.size()
                           ? run.end()
                           : std::lower_bound(begin, run.end(), limits_[piece], key_less);
      if (begin != end) parts.emplace_back(begin, end);
      count += static_cast<std::size_t>(end - begin);
    }
    std::vector<ArrowPoint> merged = spare(spare_points_);
    if (parts.size() > 1) merged.reserve(count);
    if (parts.size() == 2) {  // starts and ends, mostly
      std::merge(parts[0].begin(), parts[0].end(), parts[1].begin(), parts[1].end(),
                 std::back_inserter(merged), in_order());
    } else if (parts.size() > 2) {
      for (const PointRun part : parts) merged.insert(merged.end(), part.begin(), part.end());
      sort_runs(merged.begin(), merged.end(), in_order());
    }
    const PointRun points = parts.size() == 1 ? parts[0] : PointRun(merged);
    PieceArrows out;
    out.arrows = spare(spare_arrows_);
    out.arrows.reserve(count / 2);
    for (std::size_t first = 0; first < points.size();) {
      std::size_t last = first + 1;
      while (last < points.size() && same_key(points[first], points[last])) ++last;
      join_key(points.subspan(first, last - first), out);
      first = last;
    }
    hand_in(piece, std::move(out), std::move(merged));
  }

  // Room of a piece that is done: what malloc gets back at the end of its memory, it gives back to the system.
  template <typename Row>
  std::vector<Row> spare(std::vector<std::vector<Row>>& spares) {
    const std::lock_guard lock(mutex_);
    if (spares.empty()) return {};
    std::vector<Row> taken = std::move(spares.back());
    spares.pop_back();
    taken.clear();
    return taken;
  }

  void hand_in(std::size_t piece, PieceArrows out, std::vector<ArrowPoint> merged) {
    const std::lock_guard lock(mutex_);
    spare_points_.push_back(std::move(merged));
    pieces_[piece] = std::move(out);
    pieces_[piece].is_done = true;
    for (; next_ < pieces_.size() && pieces_[next_].is_done; ++next_) {
      for (const Flow& arrow : pieces_[next_].arrows) builder_.add_flow(arrow);
      if (pieces_[next_].orphan_count > 0)
        builder_.stats().count(ImportIssue::kOrphanFlow, std::nullopt, pieces_[next_].orphan_count);
      spare_arrows_.push_back(std::move(pieces_[next_].arrows));
    }
  }

  std::vector<ArrowPoint>& points_;
  TraceBuilder& builder_;
  const unsigned threads_;
  const std::size_t piece_points_;
  std::vector<std::uint32_t> rank_;  // by track
  std::vector<TrackId> meant_;       // by track
  std::vector<PointRun> runs_;
  std::vector<ArrowPoint> limits_;  // a piece begins at each, and one before the first
  std::mutex mutex_;                // guards what is below, and the builder while pieces are joined
  std::vector<PieceArrows> pieces_;
  std::size_t next_ = 0;  // the first piece that is not with the builder
  std::vector<std::vector<ArrowPoint>> spare_points_;
  std::vector<std::vector<Flow>> spare_arrows_;
};

}  // namespace

void pair_arrows(std::vector<ArrowPoint> points, TraceBuilder& builder, unsigned threads,
                 std::size_t piece_points) {
  if (!points.empty()) ArrowPairing(points, builder, threads, piece_points).run();
}

}  // namespace lanescope::format
