#include "lanescope/sample/stack_reader.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "lanescope/sample/code_table.h"

namespace lanescope::sample {
namespace {

// Memory drawn by hand: what is not drawn cannot be read.
class DrawnMemory : public ProcessMemory {
 public:
  using ProcessMemory::read;
  void read(std::span<MemoryPiece> pieces) override {
    for (MemoryPiece& piece : pieces) {
      piece.ok = true;
      for (std::size_t i = 0; i < piece.size && piece.ok; ++i) {
        const auto byte = bytes_.find(piece.address + i);
        piece.ok = byte != bytes_.end();
        if (piece.ok) static_cast<unsigned char*>(piece.to)[i] = byte->second;
      }
    }
  }
  void fill(std::uint64_t at, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) bytes_[at + i] = 0;
  }
  template <typename Word>
  void put(std::uint64_t at, Word word) {
    unsigned char bytes[sizeof word];
    std::memcpy(bytes, &word, sizeof word);
    for (std::size_t i = 0; i < sizeof word; ++i) bytes_[at + i] = bytes[i];
  }
  std::map<std::uint64_t, unsigned char>& bytes() { return bytes_; }

 private:
  std::map<std::uint64_t, unsigned char> bytes_;
};

constexpr std::uint64_t kInterpreter = 0x10000, kCodeType = 0x20000, kState = 0x30000,
                        kChunk = 0x40000;

// An interpreter of Python 3.12 with one thread, in which `outer` (line 11) calls `inner` (line
// 21).
class DrawnInterpreter {
 public:
  DrawnInterpreter() : layout_(*layout_of_version(0x030c0000)) {
    memory_.fill(kInterpreter, 256);
    memory_.put(kInterpreter + layout_.threads_head, kState);
    memory_.fill(kState, 512);
    memory_.put(kState + layout_.native_id, std::uint64_t{77});
    memory_.put(kState + layout_.frame, std::uint64_t{kState + 400});  // the cframe
    memory_.put(kState + 400 + layout_.cframe_frame, std::uint64_t{kChunk + 128});
    memory_.put(kState + layout_.chunk, kChunk);
    memory_.put(kState + layout_.chunk_top, std::uint64_t{kChunk + 1024});
    memory_.fill(kChunk, 1024);
    draw_code(0x50000, "outer", 10);
    draw_code(0x60000, "inner", 20);
    draw_frame(kChunk + 24, 0, 0x50000);
    draw_frame(kChunk + 128, kChunk + 24, 0x60000);
  }

  void draw_text(std::uint64_t at, const std::string& text) {
    memory_.fill(at, 40 + text.size() + 1);
    memory_.put(at + 16, std::uint64_t{text.size()});
    memory_.put(at + 32, std::uint32_t{1 << 2 | 1 << 5 | 1 << 6});  // one byte, compact, ASCII
    for (std::size_t i = 0; i < text.size(); ++i) memory_.put(at + 40 + i, text[i]);
  }
  void draw_code(std::uint64_t at, const std::string& name, int first_line) {
    memory_.fill(at, 256);
    memory_.put(at + 8, kCodeType);
    memory_.put(at + 16, std::uint64_t{8});  // instructions
    memory_.put(at + layout_.code_file, std::uint64_t{at + 0x1000});
    memory_.put(at + layout_.code_name, std::uint64_t{at + 0x2000});
    memory_.put(at + layout_.code_lines, std::uint64_t{at + 0x3000});
    memory_.put(at + layout_.code_first_line, std::int32_t{first_line});
    draw_text(at + 0x1000, "/home/me/program.py");
    draw_text(at + 0x2000, name);
    memory_.fill(at + 0x3000, 40);
    memory_.put(at + 0x3000 + 16, std::uint64_t{2});
    memory_.put(at + 0x3000 + 32, std::uint8_t{0x80 | 13 << 3 | 7});  // eight instructions
    memory_.put(at + 0x3000 + 33, std::uint8_t{2});                   // of the next line
  }
  void draw_frame(std::uint64_t at, std::uint64_t previous, std::uint64_t code) {
    memory_.put(at + layout_.frame_previous, previous);
    memory_.put(at + layout_.frame_code, code);
    memory_.put(at + layout_.frame_instruction, std::uint64_t{code + layout_.code_bytecode + 4});
    memory_.put(at + layout_.frame_owner, std::uint8_t{0});
  }

  DrawnMemory memory_;
  PythonLayout layout_;
};

TEST(StackReaderTest, ReadsAStackWithItsLines) {
  DrawnInterpreter drawn;
  StackReader reader(drawn.memory_, drawn.layout_, kInterpreter, kCodeType);
  const auto& stacks = reader.sample();
  ASSERT_EQ(stacks.size(), 1u);
  EXPECT_EQ(stacks[0].thread, 77u);
  ASSERT_EQ(stacks[0].frames.size(), 2u);
  EXPECT_EQ(reader.function(stacks[0].frames[0].function).name, "inner");
  EXPECT_EQ(stacks[0].frames[0].line, 21);
  EXPECT_EQ(reader.function(stacks[0].frames[1].function).name, "outer");
  EXPECT_EQ(reader.function(stacks[0].frames[1].function).file, "/home/me/program.py");
  EXPECT_EQ(reader.function(stacks[0].frames[1].function).first_line, 10);
  EXPECT_EQ(stacks[0].frames[1].line, 11);
  EXPECT_EQ(reader.counts().torn, 0u);
}

TEST(StackReaderTest, LeavesOutTheThreadToSkip) {
  DrawnInterpreter drawn;
  StackReader reader(drawn.memory_, drawn.layout_, kInterpreter, kCodeType);
  EXPECT_TRUE(reader.sample(77).empty());
}

TEST(StackReaderTest, SkipsFramesWithoutPythonCode) {
  DrawnInterpreter drawn;
  drawn.draw_frame(kChunk + 400, kChunk + 24, 0x50000);
  drawn.memory_.put(kChunk + 400 + drawn.layout_.frame_owner, std::uint8_t{3});
  drawn.memory_.put(kChunk + 128 + drawn.layout_.frame_previous, std::uint64_t{kChunk + 400});
  StackReader reader(drawn.memory_, drawn.layout_, kInterpreter, kCodeType);
  ASSERT_EQ(reader.sample().size(), 1u);
  EXPECT_EQ(reader.sample()[0].frames.size(), 2u);
}

// A generator that yields between two reads has no caller any more.
TEST(StackReaderTest, DropsAGeneratorWithoutACaller) {
  DrawnInterpreter drawn;
  drawn.memory_.put(kChunk + 128 + drawn.layout_.frame_owner, kOwnedByGenerator);
  StackReader reader(drawn.memory_, drawn.layout_, kInterpreter, kCodeType);
  EXPECT_EQ(reader.sample().size(), 1u);
  drawn.memory_.put(kChunk + 128 + drawn.layout_.frame_previous, std::uint64_t{0});
  EXPECT_TRUE(reader.sample().empty());
  EXPECT_EQ(reader.counts().torn, 1u);
}

TEST(StackReaderTest, NoticesAnotherCodeObjectAtAnOldAddress) {
  DrawnInterpreter drawn;
  StackReader reader(drawn.memory_, drawn.layout_, kInterpreter, kCodeType);
  ASSERT_EQ(reader.sample().size(), 1u);
  drawn.draw_code(0x60000, "another", 30);
  // The frame has not moved, so the stack may look unchanged for a while.
  std::string name;
  for (int i = 0; i < 200 && name != "another"; ++i)
    name = reader.function(reader.sample()[0].frames[0].function).name;
  EXPECT_EQ(name, "another");
  // A stack that does change is checked at once.
  drawn.draw_code(0x60000, "third", 40);
  drawn.memory_.put(kChunk + 128 + drawn.layout_.frame_instruction,
                    std::uint64_t{0x60000 + drawn.layout_.code_bytecode + 6});
  EXPECT_EQ(reader.function(reader.sample()[0].frames[0].function).name, "third");
}

TEST(StackReaderTest, DropsAndCountsAStackThatCannotBe) {
  DrawnInterpreter drawn;
  StackReader reader(drawn.memory_, drawn.layout_, kInterpreter, kCodeType);
  drawn.memory_.put(kChunk + 128 + drawn.layout_.frame_code, std::uint64_t{0x99999998});
  EXPECT_TRUE(reader.sample().empty());
  EXPECT_EQ(reader.counts().torn, 1u);
  drawn.draw_frame(kChunk + 128, kChunk + 128, 0x60000);  // a frame that calls itself, for ever
  EXPECT_EQ(reader.sample().size(), 1u);
  EXPECT_TRUE(reader.sample()[0].is_cut);
  drawn.memory_.put(kInterpreter + drawn.layout_.threads_head, std::uint64_t{0x12345678});
  EXPECT_TRUE(reader.sample().empty());
  EXPECT_EQ(reader.counts().lost_samples, 1u);
}

TEST(StackReaderTest, ReadsALongListOfThreadsToItsLimit) {
  DrawnInterpreter drawn;
  drawn.memory_.put(kState + drawn.layout_.thread_next, kState);  // a list without an end
  StackReader reader(drawn.memory_, drawn.layout_, kInterpreter, kCodeType);
  EXPECT_EQ(reader.sample().size(), StackReader::kMostThreads);
  EXPECT_EQ(reader.counts().lost_threads, 1u);
}

TEST(StackReaderTest, SurvivesFlippedBytes) {
  std::mt19937_64 random(11);
  DrawnInterpreter whole;
  std::vector<std::uint64_t> places;
  for (const auto& [at, byte] : whole.memory_.bytes()) places.push_back(at);
  std::size_t read = 0, lost = 0;
  for (int round = 0; round < 300; ++round) {
    DrawnMemory memory = whole.memory_;
    StackReader reader(memory, whole.layout_, kInterpreter, round % 2 == 0 ? kCodeType : 0);
    for (int step = 0; step < 4; ++step) {
      for (std::uint64_t flips = random() % 20; flips-- > 0;)
        memory.bytes()[places[random() % places.size()]] = static_cast<unsigned char>(random());
      for (const SampledStack& stack : reader.sample())
        for (const SampledFrame& frame : stack.frames) {
          EXPECT_LE(reader.function(frame.function).name.size(), 4u * 512u);
          ++read;
        }
    }
    lost += reader.counts().torn + reader.counts().lost_samples;
  }
  EXPECT_GT(read, 0u);
  EXPECT_GT(lost, 0u);
}

// Every address can be read and holds anything.
class RandomMemory : public ProcessMemory {
 public:
  using ProcessMemory::read;
  explicit RandomMemory(std::uint64_t seed) : random_(seed) {}
  void read(std::span<MemoryPiece> pieces) override {
    for (MemoryPiece& piece : pieces) {
      piece.ok = random_() % 16 != 0;
      auto* to = static_cast<unsigned char*>(piece.to);
      for (std::size_t i = 0; i < piece.size; ++i) to[i] = static_cast<unsigned char>(random_());
      // Some words that look like pointers.
      for (std::size_t i = 0; i + 8 <= piece.size; i += 8)
        if (random_() % 2 == 0) {
          const std::uint64_t pointer = (random_() & 0xffffffff) << 3;
          std::memcpy(to + i, &pointer, sizeof pointer);
        }
    }
  }

 private:
  std::mt19937_64 random_;
};

TEST(StackReaderTest, SurvivesRandomMemoryWithEveryLayout) {
  for (const std::uint32_t version : {0x03090000u, 0x030a0000u, 0x030b0000u, 0x030c0000u})
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      RandomMemory memory(seed);
      StackReader reader(memory, *layout_of_version(version), kInterpreter, 0);
      for (int i = 0; i < 3; ++i) reader.sample();
      EXPECT_GE(reader.counts().lost_samples + reader.counts().torn + reader.counts().lost_threads,
                1u);
    }
}

TEST(PythonLayoutTest, AnUnknownVersionIsOneClearLine) {
  const auto layout = layout_of_version(0x03080000);
  ASSERT_FALSE(layout);
  EXPECT_EQ(layout.error().message,
            "expected Python 3.9 to 3.15, found 3.8; its stacks are not sampled");
}

TEST(PythonLayoutTest, ReadsTheInterpretersOwnTable) {
  DrawnMemory memory;
  memory.fill(0x1000, 1024);
  memory.put(0x1000, std::uint64_t{0x7970677562656478});  // "xdebugpy"
  const auto set = [&](int place, std::uint64_t value) { memory.put(0x1000 + place * 8, value); };
  // The numbers of CPython 3.13.0, from pycore_runtime_init.h compiled on x86-64.
  set(1, 0x030d00f0), set(5, 632), set(8, 7264), set(9, 7344);
  set(21, 8), set(23, 72), set(24, 152), set(25, 160), set(26, 232);
  set(28, 80), set(29, 8), set(30, 0), set(31, 56), set(33, 70);
  set(35, 112), set(36, 120), set(38, 136), set(39, 68), set(43, 200), set(70, 40);
  const auto layout = find_layout(memory, 0x1000, 0);
  ASSERT_TRUE(layout) << layout.error().message;
  EXPECT_EQ(layout->interpreters_head, 632u);
  EXPECT_EQ(layout->threads_head, 7344u);
  EXPECT_EQ(layout->frame, 72u);
  EXPECT_EQ(layout->native_id, 160u);
  EXPECT_EQ(layout->frame_instruction, 56u);
  EXPECT_EQ(layout->code_first_line, 68u);
  EXPECT_EQ(layout->code_bytecode, 200u);
  EXPECT_EQ(layout->ascii_header, 40u);
  set(2, 1);
  EXPECT_FALSE(find_layout(memory, 0x1000, 0));  // free-threaded
  set(2, 0), set(43, 99999);
  EXPECT_FALSE(find_layout(memory, 0x1000, 0));  // no offset
}

// As CPython 3.14.10 and 3.15.2 have them in memory, x86-64.
TEST(PythonLayoutTest, LaterTablesHaveMoreNumbersInBetween) {
  struct Row {
    std::uint64_t version;
    std::map<int, std::uint64_t> numbers;
    std::uint32_t native_id, chunk, gil_holder, gc_collecting;
  };
  const Row rows[] = {
      {0x030e0af0,
       {{5, 808},  {8, 7272}, {9, 7344}, {11, 7408}, {19, 7792}, {82, 192}, {24, 8},  {26, 72},
        {27, 152}, {28, 160}, {29, 232}, {31, 88},   {32, 8},    {33, 0},   {34, 56}, {36, 74},
        {40, 112}, {41, 120}, {43, 136}, {44, 68},   {48, 208},  {80, 40}},
       160,
       232,
       7792,
       7600},
      {0x030f02f0,
       {{5, 936},  {8, 7264}, {9, 7336}, {11, 7400}, {19, 7744}, {95, 112}, {24, 8},  {26, 72},
        {30, 176}, {31, 184}, {32, 256}, {39, 88},   {40, 8},    {41, 0},   {42, 56}, {44, 74},
        {48, 112}, {49, 120}, {51, 136}, {52, 68},   {56, 208},  {92, 40}},
       184,
       256,
       7744,
       7512}};
  for (const Row& row : rows) {
    DrawnMemory memory;
    memory.fill(0x1000, 1024);
    memory.put(0x1000, std::uint64_t{0x7970677562656478});
    memory.put(0x1008, row.version);
    for (const auto& [place, value] : row.numbers)
      memory.put(0x1000 + static_cast<std::uint64_t>(place) * 8, value);
    const auto layout = find_layout(memory, 0x1000, 0);
    ASSERT_TRUE(layout) << layout.error().message;
    EXPECT_EQ(layout->version, row.version >> 16);
    EXPECT_EQ(layout->frame, 72u);
    EXPECT_EQ(layout->native_id, row.native_id);
    EXPECT_EQ(layout->chunk, row.chunk);
    EXPECT_EQ(layout->gil_holder, row.gil_holder);
    EXPECT_EQ(layout->gc_collecting, row.gc_collecting);
    EXPECT_EQ(layout->frame_instruction, 56u);
    EXPECT_EQ(layout->frame_owner, 74u);
    EXPECT_EQ(layout->code_lines, 136u);
    EXPECT_EQ(layout->code_bytecode, 208u);
    EXPECT_EQ(layout->ascii_header, 40u);
  }
}

}  // namespace
}  // namespace lanescope::sample
