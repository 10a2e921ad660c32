// Example, one thread: A [0, 100), B [10, 50), C [40, 60). B is inside A. C overlaps B's end, so B
// closes and C becomes A's second child: self(A) = 100 - 40 - 20.
//
// Several threads: a track is cut into pieces, and each piece is nested as if nothing was open before it. Slices on
// top of a piece still lack their parents. What is open at the end of a piece and of all pieces before it is a chain
// of parents; one pass over the pieces finds where each chain begins. Then each piece hangs its top slices into the chain
// before it. Example, pieces of two slices: A, B | C, D with D inside C. The second piece finds C on top and D inside it. The chain
// before it is B, A; C closes B, so A is its parent, and C and D are one level deeper.
#include "lanescope/analysis/slice_nesting.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "lanescope/analysis/nested_kinds.h"
#include "lanescope/base/share_work.h"

namespace lanescope::analysis {
namespace {

// Slices of one track that follow each other.
struct NestingPiece {
  std::uint32_t first = 0, end = 0;
  bool nests = false;      // it is of a thread
  bool continues = false;  // the piece before it is of the same track
  // The latest start and end of the slices on top of the piece. What is open before the piece and lasts longer stays open.
  std::int64_t last_start_ns = std::numeric_limits<std::int64_t>::min();
  std::int64_t last_end_ns = std::numeric_limits<std::int64_t>::min();
  SliceId outermost_open = kNone<SliceId>, innermost_open = kNone<SliceId>;  // at its end
  std::uint32_t open_count = 0;
  // Open before the piece: the innermost slice, and how many.
  SliceId around = kNone<SliceId>;
  std::uint32_t around_count = 0;
  std::vector<std::pair<SliceId, std::int64_t>> children_ns{};  // of slices before the piece
};

class Nester {
 public:
  Nester(const Trace& trace, const NestingOptions& options)
      : trace_(trace), python_frames_(options.python_frames) {
    const std::size_t count = trace.slices().size();
    nesting_.parent = UnsetArray<SliceId>(count);
    nesting_.depth = UnsetArray<std::uint32_t>(count);
    nesting_.self_ns = UnsetArray<std::int64_t>(count);
    threads_ = options.threads == 0 ? usual_threads() : options.threads;
    if (count <= options.slices_at_once) threads_ = 1;
    cut(threads_ == 1 ? std::numeric_limits<std::uint32_t>::max() : options.slices_at_once);
  }

  SliceNesting run() {
    share_work(pieces_.size(), threads_, [&](std::size_t i) { nest(pieces_[i]); });
    join();
    share_work(pieces_.size(), threads_, [&](std::size_t i) {
      if (pieces_[i].around_count > 0) hang(pieces_[i]);
    });
    for (const NestingPiece& piece : pieces_)
      for (const auto& [parent, children_ns] : piece.children_ns)
        nesting_.self_ns[raw(parent)] -= children_ns;
    return std::move(nesting_);
  }

 private:
  void cut(std::uint32_t slices_at_once) {
    for (const Track& track : trace_.tracks()) {
      const std::uint32_t end = track.first_slice + track.slice_count;
      for (std::uint32_t first = track.first_slice; first < end;) {
        const std::uint32_t next = first + std::min(slices_at_once, end - first);
        pieces_.push_back({.first = first,
                           .end = next,
                           .nests = track.kind == TrackKind::kThread,
                           .continues = first > track.first_slice});
        first = next;
      }
    }
  }

  bool closes(SliceId open, std::int64_t start_ns, std::int64_t end_ns) const {
    const std::int64_t open_end_ns = trace_.end_ns(open);
    return start_ns >= open_end_ns || end_ns > open_end_ns;
  }

  void nest(NestingPiece& piece) {
    std::vector<SliceId> open;
    for (std::uint32_t i = piece.first; i < piece.end; ++i) {
      const SliceId id{i};
      nesting_.parent[i] = kNone<SliceId>;
      nesting_.depth[i] = SliceNesting::kNotNested;
      nesting_.self_ns[i] = trace_.dur_ns(id);
      if (!piece.nests || !takes_part_in_nesting(trace_.kind(id), python_frames_)) continue;
      const std::int64_t start_ns = trace_.start_ns(id), end_ns = trace_.end_ns(id);
      while (!open.empty() && closes(open.back(), start_ns, end_ns)) open.pop_back();
      nesting_.depth[i] = static_cast<std::uint32_t>(open.size());
      if (open.empty()) {
        piece.last_start_ns = start_ns;
        piece.last_end_ns = std::max(piece.last_end_ns, end_ns);
      } else {
        nesting_.parent[i] = open.back();
        nesting_.self_ns[raw(open.back())] -= trace_.dur_ns(id);
      }
      open.push_back(id);
    }
    if (open.empty()) return;
    piece.outermost_open = open.front();
    piece.innermost_open = open.back();
    piece.open_count = static_cast<std::uint32_t>(open.size());
  }

  // What is open before each piece. A slice that is open contains the ones that opened after it, so they close from the inside out.
  void join() {
    SliceId open = kNone<SliceId>;
    std::uint32_t open_count = 0;
    for (NestingPiece& piece : pieces_) {
      if (!piece.continues) {
        open = kNone<SliceId>;
        open_count = 0;
      }
      piece.around = open;
      piece.around_count = open_count;
      for (; open_count > 0 && closes(open, piece.last_start_ns, piece.last_end_ns); --open_count)
        open = nesting_.parent[raw(open)];
      if (piece.open_count == 0) continue;
      nesting_.parent[raw(piece.outermost_open)] = open;
      open = piece.innermost_open;
      open_count += piece.open_count;
    }
  }

  // Reads the chain of other pieces, which join() has finished, and writes to rows of this piece only.
  void hang(NestingPiece& piece) {
    SliceId around = piece.around;
    std::uint32_t around_count = piece.around_count;
    std::int64_t children_ns = 0;
    for (std::uint32_t i = piece.first; i < piece.end; ++i) {
      const SliceId id{i};
      if (nesting_.depth[i] == SliceNesting::kNotNested) continue;
      if (nesting_.depth[i] == 0) {
        while (around_count > 0 && closes(around, trace_.start_ns(id), trace_.end_ns(id))) {
          if (children_ns != 0)
            piece.children_ns.emplace_back(around, std::exchange(children_ns, 0));
          around = nesting_.parent[raw(around)];
          --around_count;
        }
        if (around_count == 0) return;
        if (id != piece.outermost_open) nesting_.parent[i] = around;  // join() has set that one
        children_ns += trace_.dur_ns(id);
      }
      nesting_.depth[i] += around_count;
    }
    if (children_ns != 0) piece.children_ns.emplace_back(around, children_ns);
  }

  const Trace& trace_;
  const bool python_frames_;
  unsigned threads_ = 1;
  std::vector<NestingPiece> pieces_;
  SliceNesting nesting_;
};

}  // namespace

SliceNesting compute_slice_nesting(const Trace& trace, const NestingOptions& options) {
  return Nester(trace, options).run();
}

}  // namespace lanescope::analysis
