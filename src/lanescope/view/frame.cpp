#include "lanescope/view/frame.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "lanescope/analysis/time_span.h"

namespace lanescope::view {
namespace {

static_assert(std::endian::native == std::endian::little, "the buffer is little-endian");

constexpr std::uint32_t kMagic = 0x4656534C;  // "LSVF"
constexpr std::uint32_t kVersion = 1, kNothing = ~std::uint32_t{0};
constexpr std::size_t kHeaderBytes = 32, kEntryBytes = 24;

template <typename T>
void put(std::string& out, std::size_t at, T value) {
  std::memcpy(out.data() + at, &value, sizeof value);
}

struct Entry {
  std::uint32_t lane, row, kind, count, offset;
};

class FrameMaker {
 public:
  FrameMaker(const Lanes& lanes, const FrameRequest& request) : lanes_(lanes), request_(request) {
    step_ns_ = static_cast<std::int64_t>(
        std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(request.step_ns, 1))));
    t0_ = lanes.origin_ns() + request.t0_ns;
    t1_ = lanes.origin_ns() + request.t1_ns;
    most_raw_ = 2 * static_cast<std::size_t>((t1_ - t0_) / step_ns_ + 1);
  }

  std::string run() {
    std::size_t rows = 0;
    for (const std::uint32_t number : request_.lanes)
      rows += std::max<std::size_t>(1, lanes_.lanes()[number].row_count);
    // The directory comes first, so its size must be known: empty rows leave a little room unused.
    out_.resize(kHeaderBytes + kEntryBytes * std::min(rows, kMostFrameEntries));
    for (const std::uint32_t number : request_.lanes) {
      const Lane& lane = lanes_.lanes()[number];
      if (lane.kind == LaneKind::kCounter) add_counter(number, lane);
      for (std::uint32_t row = 0; row < lane.row_count && entries_.size() < kMostFrameEntries;
           ++row)
        add_row(number, lane, row);
    }
    put(out_, 0, kMagic);
    put(out_, 4, kVersion);
    put(out_, 8, request_.generation);
    put(out_, 12, static_cast<std::uint32_t>(entries_.size()));
    put(out_, 16, static_cast<double>(request_.t0_ns));
    put(out_, 24, static_cast<double>(step_ns_));
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      const std::size_t at = kHeaderBytes + i * kEntryBytes;
      put(out_, at, entries_[i].lane);
      put(out_, at + 4, entries_[i].row);
      put(out_, at + 8, entries_[i].kind);
      put(out_, at + 12, entries_[i].count);
      put(out_, at + 16, entries_[i].offset);
      put(out_, at + 20, std::uint32_t{0});
    }
    return std::move(out_);
  }

 private:
  // Room for an entry's columns; returns where it begins.
  std::size_t begin_entry(std::uint32_t lane, std::uint32_t row, std::uint32_t kind,
                          std::size_t count, std::size_t words, std::size_t bytes) {
    out_.resize((out_.size() + 7) & ~std::size_t{7});
    const std::size_t begin = out_.size();
    const std::size_t padded = (count + 3) & ~std::size_t{3};
    out_.resize(begin + words * 4 * count + bytes * padded);
    entries_.push_back(
        {lane, row, kind, static_cast<std::uint32_t>(count), static_cast<std::uint32_t>(begin)});
    return begin;
  }

  void add_row(std::uint32_t number, const Lane& lane, std::uint32_t row) {
    cells_.clear();
    lanes_.index().cells(lane.first_row + row, t0_, t1_, step_ns_, most_raw_, cells_);
    if (cells_.empty()) return;
    const std::size_t count = cells_.size(), padded = (count + 3) & ~std::size_t{3};
    const std::size_t begin = begin_entry(number, row, 0, count, 5, 3);
    const bool has_slices = Lanes::has_slices(lane.kind);
    const auto& names = lanes_.trace().slices().name;
    for (std::size_t i = 0; i < count; ++i) {
      const LevelCell& cell = cells_[i];
      const auto word = [&](std::size_t column, auto value) {
        static_assert(sizeof value == 4);
        put(out_, begin + (column * count + i) * 4, value);
      };
      const auto byte = [&](std::size_t column, std::uint8_t value) {
        out_[begin + 5 * 4 * count + column * padded + i] = static_cast<char>(value);
      };
      word(0, static_cast<float>(cell.start_ns - t0_));
      word(1, static_cast<float>(cell.dur_ns));
      word(2, cell.id);
      word(3, has_slices ? raw(names[cell.id]) : kNothing);
      word(4, cell.count);
      byte(0, coverage(cell));
      byte(1, kind_byte(lane.kind, cell.id));
      std::uint8_t flags = 0;
      if (row > 0 && (lane.kind == LaneKind::kGpu || lane.kind == LaneKind::kDevice ||
                      lane.kind == LaneKind::kAsync || lane.kind == LaneKind::kSync))
        flags |= kOverlapFlag;
      if (cell.start_ns < t0_ || cell.start_ns + cell.dur_ns > t1_) flags |= kClippedFlag;
      if (cell.dur_ns == 0) flags |= kZeroLengthFlag;
      byte(2, flags);
    }
  }

  std::uint8_t kind_byte(LaneKind lane, std::uint32_t id) const {
    if (lane == LaneKind::kIdle) return static_cast<std::uint8_t>(lanes_.idle_cause(id));
    return static_cast<std::uint8_t>(lane == LaneKind::kSteps ? TimeKind::kAnnotation
                                                              : lanes_.kind(SliceId{id}));
  }

  static std::uint8_t coverage(const LevelCell& cell) {
    if (cell.count == 1 || cell.dur_ns == 0) return 255;
    const double share = static_cast<double>(cell.busy_ns) / static_cast<double>(cell.dur_ns);
    return static_cast<std::uint8_t>(std::clamp(share * 255, 1.0, 255.0));
  }

  void add_counter(std::uint32_t number, const Lane& lane) {
    const std::vector<CounterCell> cells = lanes_.counter(lane).cells(t0_, t1_, step_ns_);
    if (cells.empty() || entries_.size() >= kMostFrameEntries) return;
    const std::size_t count = cells.size();
    const std::size_t begin = begin_entry(number, 0, 2, count, 4, 0);
    for (std::size_t i = 0; i < count; ++i) {
      const auto word = [&](std::size_t column, double value) {
        put(out_, begin + (column * count + i) * 4, static_cast<float>(value));
      };
      word(0, static_cast<double>(cells[i].start_ns - t0_));
      word(1, cells[i].smallest);
      word(2, cells[i].largest);
      word(3, cells[i].last);
    }
  }

  const Lanes& lanes_;
  const FrameRequest& request_;
  std::int64_t step_ns_, t0_, t1_;
  std::size_t most_raw_;
  std::string out_;
  std::vector<Entry> entries_;
  std::vector<LevelCell> cells_;
};

}  // namespace

Result<std::string> make_frame(const Lanes& lanes, const FrameRequest& request) {
  const auto wrong = [](const char* text) { return Error{Errc::kInvalidArgument, text}; };
  const std::int64_t longest = analysis::kLongestSpanNs;
  if (request.t0_ns < -longest || request.t1_ns > longest || request.t0_ns >= request.t1_ns)
    return wrong("expected a window with t0 < t1, in nanoseconds");
  if (request.step_ns < 1 || (request.t1_ns - request.t0_ns) / request.step_ns > kMostFrameSteps)
    return wrong("expected a step of 1 ns or more, and at most 16,384 of them in the window");
  if (request.lanes.size() > kMostFrameLanes) return wrong("expected at most 512 lanes");
  for (const std::uint32_t lane : request.lanes)
    if (lane >= lanes.lanes().size()) return wrong("expected numbers of lanes, found another");
  return FrameMaker(lanes, request).run();
}

}  // namespace lanescope::view
