// What happens while an owner's thread runs code without events: other threads, Python frames,
// samples of Python stacks; for owners.cpp.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "lanescope/analysis/steps.h"
#include "lanescope/explain/facts.h"
#include "lanescope/explain/owners.h"
#include "lanescope/explain/step_path.h"

namespace lanescope::explain {

class OwnerCode {
 public:
  // Borrows both. `has_stacks`: the trace has Python frames.
  OwnerCode(const Facts& facts, const StepPath& path, bool has_stacks)
      : facts_(facts), path_(path), has_stacks_(has_stacks) {}

  // `piece`: code of owners[owner]. O(threads log n), and what happens in the piece.
  void add(std::uint32_t owner, const simulate::PathPiece& piece) {
    add_other_threads(owner, piece);
    add_frames(owner, piece);
    add_window(owner, piece);
  }
  // The same for its Python frames alone.
  void add_frames(std::uint32_t owner, const simulate::PathPiece& piece);
  // Fills in other_thread, other_event, other_ns, frame, frame_ns and sampled if one thread, one
  // frame, or one sampled function holds at least half of the owner's time, or of its samples.
  // is_torch_code and is_profilers follow the innermost frames.
  void finish(std::vector<Owner>& owners) const;

 private:
  void add_other_threads(std::uint32_t owner, const simulate::PathPiece& piece);
  void add_window(std::uint32_t owner, const simulate::PathPiece& piece);
  void tell_whose_code(Owner& owner, const std::vector<analysis::Window>& windows) const;
  TrackId thread_of(const simulate::PathPiece& piece) const;

  const Facts& facts_;
  const StepPath& path_;
  bool has_stacks_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::string>, std::int64_t>
      elsewhere_;                                                           // owner, track, event
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> frames_;  // owner, name
  std::map<std::uint32_t, std::vector<SliceId>> frames_of_;                 // by track, by start
  std::map<std::uint32_t, std::vector<analysis::Window>> windows_;  // of owners, of one thread
};

}  // namespace lanescope::explain
