// The Python frames of a trace: a row for each text that names frames. Thousands of slices share a text
// ("train.py(88): step"), so each is parsed once, and a slice leads to its row by the id of its name.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "lanescope/model/trace.h"
#include "lanescope/names/python_frame.h"

namespace lanescope::analysis {

// O(slices), and O(length) for each text. Borrows its texts from the trace. Any thread.
class FrameTable {
 public:
  FrameTable() = default;
  explicit FrameTable(const Trace& trace);

  // Nothing: no Python frame has this name.
  const names::PythonFrame* find(StringId name) const {
    const std::uint32_t row = raw(name) < row_of_.size() ? row_of_[raw(name)] : kNoRow;
    return row == kNoRow ? nullptr : &rows_[row];
  }
  // In order of first use.
  std::span<const names::PythonFrame> rows() const { return rows_; }

 private:
  static constexpr std::uint32_t kNoRow = 0xffffffff;
  std::vector<std::uint32_t> row_of_;  // by name; empty without frames
  std::vector<names::PythonFrame> rows_;
};

}  // namespace lanescope::analysis
