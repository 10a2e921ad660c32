// Reads the slices of a trace once, in blocks that threads share: which are rows of the table of names, which names they have,
// what device work each operator launched. Private to averages_by_track.cpp.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lanescope/analysis/key_averages.h"
#include "lanescope/analysis/launch_owners.h"
#include "lanescope/analysis/track_rows.h"
#include "lanescope/model/trace.h"

namespace lanescope::analysis::by_track {

// The same for any number of threads and of slices a block.
class TrackBlocks {
 public:
  // Borrows both.
  TrackBlocks(const Trace& trace, const TorchEventRows& rows, unsigned threads,
              std::uint32_t block_slices);

  // False: rows of the profiler's own cost are on the device, too.
  bool read();
  // After read(): what one block alone does not know. Sets the device's busy time and window and the corrections of `out`.
  void join(KeyAverages& out);

  // How many pieces of device work these slices own, as operator or, without one, as launch call. The slices are in order and
  // may repeat; each piece counts as often as its owner appears.
  std::uint64_t count_work_of(std::span<const SliceId> owners) const;

  const RowInputs& inputs() const { return inputs_; }
  const std::vector<std::string>& names() const { return names_; }  // by number
  std::uint32_t track_count() const { return static_cast<std::uint32_t>(first_block_.size() - 1); }
  std::span<const Block> of_track(std::uint32_t track) const {
    return std::span(blocks_).subspan(first_block_[track],
                                      first_block_[track + 1] - first_block_[track]);
  }

  // How many rows of the track come before the event. Adds the number of comparisons that it took to `steps`.
  std::uint32_t rows_before(std::uint32_t track, const EventKey& event, std::uint64_t& steps) const;

 private:
  void cut();
  void read(Block& block);
  void add_work(std::size_t work, Block& block);
  SliceId owner_of(std::size_t work) const;  // a row of owners_
  void join_work(KeyAverages& out);
  void number_names();

  const Trace& trace_;
  const TorchEventRows& rows_;
  const unsigned threads_;
  const std::uint32_t block_slices_;
  RowInputs inputs_;
  LaunchOwners owners_;
  std::vector<Block> blocks_;
  std::vector<std::size_t> first_block_;                  // by track, and the end
  std::vector<std::uint32_t> track_rows_;                 // by track
  std::vector<std::uint8_t> used_names_, used_op_names_;  // by string
  std::vector<std::string> names_;
};

}  // namespace lanescope::analysis::by_track
