// A recording that is read in pieces says the same as one that is read at once: random recordings
// with everything that crosses the border of a piece, cut into pieces of every size.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "lanescope/codec/byte_sink.h"
#include "lanescope/codec/unpack.h"
#include "lanescope/format/kineto_json/write_kineto_json.h"
#include "lanescope/format/read_trace.h"
#include "lanescope/format/spool/read_spool.h"
#include "lanescope/testing/sanitizers.h"
#include "lanescope/testing/spool_sketch.h"
#include "lanescope/testing/trace_text.h"

namespace lanescope::format {
namespace {

using lanescope::testing::ActivitySketch;
using lanescope::testing::SpoolSketch;
using spool::ActivityKind;
using spool::RangeRecord;
using spool::Record;

constexpr std::uint32_t kThreads = 4;
constexpr std::uint32_t kSeeds = lanescope::testing::rounds(60);

// Steps of a made-up training loop: forward and backward threads, ranges that end in other chunks
// or on other threads, Python frames of which some are lost, launches whose work comes late, waits,
// memory, two windows.
class RandomRecording {
 public:
  explicit RandomRecording(std::uint32_t seed) : random_(seed) {}

  std::string bytes() {
    sketch_.window(2'000, 60'000, 0);
    if (chance(2)) sketch_.window(70'000, 110'000, 1);
    kernel_ = sketch_.text("_Z3gemmPf");
    nccl_ = sketch_.text("ncclDevKernel_AllReduce");
    for (std::uint32_t t = 0; t < kThreads; ++t) sketch_.thread(101 + t, 1 + t);
    std::uint64_t tick = 1'500;
    for (int step = 0; tick < 118'000; ++step) {
      Record& marker = begin(0, "ProfilerStep#" + std::to_string(step), tick, spool::kUserScope);
      const std::size_t marker_at = lists_[0].size() - 1;
      static_cast<void>(marker);
      for (int i = number(1, 6); i > 0; --i) tick = add_something(tick);
      end_at(0, marker_at, tick += 10);
      tick += number(1, 400);
    }
    for (std::uint32_t t = 0; t < kThreads; ++t) add_chunks(t);
    std::shuffle(works_.begin(), works_.end(), random_);
    ActivitySketch all;
    for (const ActivitySketch& work : works_)
      all.records.insert(all.records.end(), work.records.begin(), work.records.end());
    if (!all.records.empty() || chance(2)) {
      const std::size_t half = all.records.size() / 2;
      std::size_t cut = half;
      while (cut < all.records.size() &&
             spool::activity_kind(all.records[cut]) == ActivityKind::kContinued)
        ++cut;
      const auto middle = all.records.begin() + static_cast<std::ptrdiff_t>(cut);
      sketch_.activities({all.records.begin(), middle});
      sketch_.activities({middle, all.records.end()});
    }
    return sketch_.bytes();
  }

 private:
  int number(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  bool chance(int in) { return number(1, in) == 1; }
  std::uint32_t some_thread() { return static_cast<std::uint32_t>(number(0, kThreads - 1)); }

  Record& begin(std::uint32_t thread, const std::string& name, std::uint64_t tick,
                std::uint8_t scope) {
    lists_[thread].push_back(sketch_.range(name, tick, 0, scope));
    return lists_[thread].back();
  }
  void end_at(std::uint32_t thread, std::size_t at, std::uint64_t tick) {
    ends_.push_back({thread, at, tick, chance(6)});
  }

  std::uint64_t add_something(std::uint64_t tick) {
    const std::uint32_t thread = some_thread();
    const int what = number(1, 12);
    if (what == 1) {
      lists_[thread].push_back(
          spool::InstantRecord{.begin_tsc = tick, .name = sketch_.text("a moment")});
      return tick + 1;
    }
    if (what == 2) {
      lists_[thread].push_back(spool::MemoryRecord{
          .begin_tsc = tick, .total_allocated = 4096, .bytes = 512, .address = tick});
      return tick + 1;
    }
    if (what == 3) return add_backward(tick);
    if (what >= 11) return add_frame(thread, tick);
    return add_forward(thread, tick);
  }

  // One call more, or a return; some stay open, and some records are lost.
  std::uint64_t add_frame(std::uint32_t thread, std::uint64_t tick) {
    auto& open = open_frames_[thread];
    if (!open.empty() && chance(3)) {
      if (open.back() && !chance(20)) end_at(thread, *open.back(), tick);
      open.pop_back();
      return tick + 1;
    }
    if (chance(10)) {
      open.push_back(std::nullopt);
      return tick + 1;
    }
    spool::FrameRecord& frame =
        begin(thread, "f.py(" + std::to_string(open.size()) + "): f", tick, spool::kFrameScope)
            .frame;
    frame.depth = static_cast<std::uint32_t>(open.size() + 1);
    if (chance(3)) {
      frame.flags = spool::kModuleFrame;
      frame.module = number(0, 5);
    }
    open.push_back(lists_[thread].size() - 1);
    return tick + 1;
  }

  std::uint64_t add_forward(std::uint32_t thread, std::uint64_t tick) {
    const bool annotated = chance(2);
    std::size_t note = 0;
    if (annotated) {
      begin(thread, "block " + std::to_string(number(1, 3)), tick += 5, spool::kUserScope);
      note = lists_[thread].size() - 1;
    }
    const bool collective = chance(8);
    if (collective) {
      lists_[thread].push_back(spool::CallNumbersRecord{.begin_tsc = tick,
                                                        .name = sketch_.text("record_param_comms"),
                                                        .flags = spool::kHasSeq,
                                                        .seq = number(1, 99)});
    }
    RangeRecord& op = begin(thread, collective ? "record_param_comms" : "aten::mm", tick += 5,
                            spool::kFunctionScope)
                          .range;
    if (!collective && chance(2)) {
      op.flags = spool::kHasSequence;
      op.sequence_number = ++sequence_;
      forward_.push_back({thread, sequence_});
    }
    if (chance(5)) op.handle = 1'000'000 + tick;  // ended by its handle, by another thread
    const std::uint64_t handle = op.handle;
    const std::size_t at = lists_[thread].size() - 1;
    if (chance(2)) launch(thread, tick += 3, collective);
    tick += static_cast<std::uint64_t>(number(1, 900));
    if (handle != 0) {
      lists_[some_thread()].push_back(spool::EndByHandleRecord{.end_tsc = tick, .handle = handle});
    } else if (!chance(20)) {  // else it never ends
      end_at(thread, at, tick);
    }
    if (annotated) end_at(thread, note, tick += 2);
    return tick + 1;
  }

  std::uint64_t add_backward(std::uint64_t tick) {
    if (forward_.empty()) return tick + 1;
    const auto [forward_thread, sequence] =
        forward_[static_cast<std::size_t>(number(0, static_cast<int>(forward_.size()) - 1))];
    const std::uint32_t thread = some_thread();
    begin(thread, "autograd::engine::evaluate_function: MmBackward0", tick += 2,
          spool::kFunctionScope);
    const std::size_t wrapper = lists_[thread].size() - 1;
    if (chance(8)) {
      lists_[thread].push_back(
          spool::InstantRecord{.begin_tsc = tick, .name = sketch_.text("between")});
    }
    RangeRecord& node = begin(thread, "MmBackward0", tick += 2, spool::kBackwardScope).range;
    node.flags = spool::kHasSequence | spool::kHasForwardThread;
    node.sequence_number = sequence;
    node.forward_thread = 1 + forward_thread;
    const std::size_t at = lists_[thread].size() - 1;
    if (chance(2)) launch(thread, tick += 2, false);
    end_at(thread, at, tick += 40);
    end_at(thread, wrapper, tick += 2);
    return tick + 1;
  }

  // A call, perhaps with a driver call inside, and its work: soon, late, or never.
  void launch(std::uint32_t thread, std::uint64_t tick, bool collective) {
    const std::uint32_t id = ++correlation_;
    ActivitySketch calls;
    calls.call(211, tick, tick + 20, id, 101 + thread);
    if (chance(3)) {
      calls.call(307, tick + 4, tick + 9, id, 101 + thread, spool::ApiDomain::kDriver);
      std::swap(calls.records[0], calls.records[1]);  // it returns first
    }
    if (chance(2))
      for (const Record& call : calls.records) lists_[thread].push_back(call);
    else if (!chance(10))  // else its record was lost
      works_.push_back(calls);
    const auto late = static_cast<std::uint64_t>(chance(4) ? number(1'000, 30'000) : number(1, 90));
    const auto stream = static_cast<std::uint32_t>(number(7, 9));
    ActivitySketch work;
    if (chance(5)) {
      spool::CudaEventRecord event{};
      event.kind = static_cast<std::uint8_t>(ActivityKind::kCudaEvent);
      event.begin_tsc = event.end_tsc = chance(2) ? tick + late : 0;
      event.correlation = id;
      event.stream = stream;
      event.context = 1;
      event.event_id = static_cast<std::uint32_t>(number(1, 3));
      event.event_sync_id = chance(2) ? id : 0;
      work.add(event);
      events_.push_back(event);
    } else if (chance(5) && !events_.empty()) {
      spool::SyncRecord wait{};
      wait.kind = static_cast<std::uint8_t>(ActivityKind::kSync);
      wait.begin_tsc = tick + 5;
      wait.end_tsc = tick + 15;
      wait.correlation = id;
      wait.sync_kind = 2;
      wait.stream = stream;
      wait.context = 1;
      wait.event_id = events_.back().event_id;
      wait.event_sync_id = chance(2) ? events_.back().event_sync_id : 0;
      work.add(wait);
    } else {
      for (int kernels = number(0, 3); kernels > 0; --kernels)
        work.kernel(collective ? nccl_ : kernel_,
                    tick + late + static_cast<std::uint64_t>(kernels) * 50,
                    tick + late + static_cast<std::uint64_t>(kernels) * 50 + 30,
                    chance(20) ? 0x7fff0000 + id : id, stream);
    }
    works_.push_back(work);
  }

  // A thread's records in chunks of random sizes; a range's end lies in it, or in a later chunk.
  void add_chunks(std::uint32_t thread) {
    std::vector<Record>& list = lists_[thread];
    std::map<std::size_t, std::pair<std::uint32_t, std::uint32_t>> place;  // sequence, slot
    std::vector<std::vector<Record>> chunks;
    for (std::size_t at = 0; at < list.size();) {
      const auto size = std::min(list.size() - at, static_cast<std::size_t>(number(1, 40)));
      chunks.emplace_back();
      for (std::size_t i = 0; i < size; ++i, ++at) {
        place[at] = {static_cast<std::uint32_t>(chunks.size()), static_cast<std::uint32_t>(i)};
        chunks.back().push_back(list[at]);
      }
    }
    for (const End& end : ends_) {
      if (end.thread != thread) continue;
      const auto [sequence, slot] = place[end.at];
      if (!end.apart || sequence == chunks.size()) {
        chunks[sequence - 1][slot].range.end_tsc = end.tick;
        continue;
      }
      chunks.back().push_back(
          spool::RangeEndRecord{.end_tsc = end.tick, .place = {slot, sequence}});
    }
    for (std::uint32_t i = 0; i < chunks.size(); ++i) sketch_.records(thread, i + 1, chunks[i]);
  }

  struct End {
    std::uint32_t thread;
    std::size_t at;
    std::uint64_t tick;
    bool apart;
  };
  std::mt19937 random_;
  SpoolSketch sketch_;
  std::map<std::uint32_t, std::vector<Record>> lists_;
  std::map<std::uint32_t, std::vector<std::optional<std::size_t>>> open_frames_;  // by place
  std::vector<End> ends_;
  std::vector<std::pair<std::uint32_t, std::int64_t>> forward_;
  std::vector<ActivitySketch> works_;
  std::vector<spool::CudaEventRecord> events_;
  std::uint32_t kernel_ = 0, nccl_ = 0, correlation_ = 100;
  std::int64_t sequence_ = 0;
};

std::string whole_text(const std::string& bytes) {
  const auto trace = read_spool_bytes(bytes);
  EXPECT_TRUE(trace) << trace.error().message;
  const auto again = read_trace_bytes(kineto_json_text(*trace));
  EXPECT_TRUE(again);
  return testing::trace_text(*again);
}

struct InPieces {
  std::string text;
  std::size_t pieces = 0;
  ImportStats stats;
};

InPieces in_pieces(const std::string& bytes, std::uint64_t rows_per_piece) {
  InPieces out;
  std::string json;
  KinetoJsonPieces writer = KinetoJsonPieces::create(codec::string_sink(json));
  const auto stats = read_spool_bytes_pieces(
      bytes, rows_per_piece, [&](const Trace& piece, std::size_t number, std::size_t count) {
        EXPECT_EQ(number, ++out.pieces);
        EXPECT_LE(number, count);
        return writer.add(piece);
      });
  EXPECT_TRUE(stats);
  EXPECT_TRUE(writer.finish(*stats));
  out.stats = *stats;
  const auto again = read_trace_bytes(json);
  EXPECT_TRUE(again) << again.error().message;
  EXPECT_FALSE(again->import_stats().lost_anything());
  out.text = testing::trace_text(*again);
  return out;
}

TEST(SpoolPiecesTest, PiecesOfEverySizeSayWhatTheWholeSays) {
  std::size_t most_pieces = 0;
  for (std::uint32_t seed = 0; seed < kSeeds; ++seed) {
    const std::string bytes = RandomRecording(seed).bytes();
    const std::string whole = whole_text(bytes);
    const auto whole_stats = read_spool_bytes(bytes)->import_stats();
    for (const std::uint64_t rows : {1, 5, 60, 300, 100'000}) {
      const InPieces pieces = in_pieces(bytes, rows);
      most_pieces = std::max(most_pieces, pieces.pieces);
      ASSERT_EQ(pieces.text, whole) << "seed " << seed << ", " << rows << " rows a piece";
      for (std::size_t i = 0; i < kImportIssueCount; ++i) {
        const auto issue = static_cast<ImportIssue>(i);
        if (issue == ImportIssue::kOutOfOrder) continue;  // about a file's order, not its content
        EXPECT_EQ(pieces.stats[issue].count, whole_stats[issue].count)
            << import_issue_info(issue).name << ", seed " << seed << ", " << rows << " rows";
      }
    }
  }
  EXPECT_GT(most_pieces, 20u);
}

TEST(SpoolPiecesTest, ARealRecordingInPiecesSaysWhatTheWholeSays) {
  auto file = codec::open_file(LANESCOPE_SOURCE_DIR
                               "/tests/data/h200_spool/matmul_add_64_first_steps.lspool.gz");
  ASSERT_TRUE(file);
  auto source = codec::open_unpacked(*std::move(file));
  ASSERT_TRUE(source);
  std::string bytes;
  std::vector<char> piece(1 << 16);
  while (true) {
    const auto got = (*source)->read(piece);
    ASSERT_TRUE(got);
    if (*got == 0) break;
    bytes.append(piece.data(), *got);
  }
  const std::string whole = whole_text(bytes);
  for (const std::uint64_t rows : {100, 1000, 3000}) {
    const InPieces pieces = in_pieces(bytes, rows);
    EXPECT_GT(pieces.pieces, 1u);
    EXPECT_EQ(pieces.text, whole) << rows;
  }
}

// Damaged ticks: three ranges of 4.6 years. A Trace holds nine years of such ranges, and so does the file that pieces become.
TEST(SpoolPiecesTest, PiecesShareTheLimitOfLongDurations) {
  constexpr std::uint64_t kLong = std::uint64_t{1} << 56;  // ticks of 2 ns: 2^57 ns
  SpoolSketch sketch;
  sketch.window(1'000, 2 * kLong);
  sketch.thread(101, 1);
  for (std::uint32_t i = 0; i < 3; ++i)
    sketch.records(0, i + 1, {sketch.range("long", 2'000 + i * 10, 2'000 + kLong - i * 10)});
  const std::string bytes = sketch.bytes();
  const auto whole = read_spool_bytes(bytes);
  ASSERT_TRUE(whole);
  const std::uint64_t bad = whole->import_stats()[ImportIssue::kBadTime].count;
  EXPECT_GE(bad, 1u);
  const InPieces pieces = in_pieces(bytes, 1);  // says that reading its file loses nothing
  EXPECT_GT(pieces.pieces, 1u);
  EXPECT_EQ(pieces.stats[ImportIssue::kBadTime].count, bad);
}

TEST(SpoolPiecesTest, AnErrorOfTheSinkEndsTheReading) {
  const std::string bytes = RandomRecording(1).bytes();
  std::size_t pieces = 0;
  const auto stats = read_spool_bytes_pieces(
      bytes, 5, [&](const Trace&, std::size_t, std::size_t) -> Result<void> {
        if (++pieces == 2) return Error{Errc::kIo, "disk full"};
        return {};
      });
  ASSERT_FALSE(stats);
  EXPECT_EQ(stats.error().message, "disk full");
  EXPECT_EQ(pieces, 2u);
}

}  // namespace
}  // namespace lanescope::format
