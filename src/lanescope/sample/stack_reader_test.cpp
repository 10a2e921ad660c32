#include "lanescope/sample/stack_reader.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "lanescope/sample/code_table.h"
#include "lanescope/sample/drawn_memory_test.h"

namespace lanescope::sample {
namespace {

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

// One call reads the thread states and, where they led to in the last sample, the frames, their memory and their code.
TEST(StackReaderTest, ReadsAThreadThatGoesOnInOneCall) {
  DrawnInterpreter drawn;
  StackReader reader(drawn.memory_, drawn.layout_, kInterpreter, kCodeType);
  const std::uint64_t instruction = kChunk + 128 + drawn.layout_.frame_instruction;
  const auto calls_of = [&](std::uint64_t offset) {
    drawn.memory_.put(instruction, 0x60000 + drawn.layout_.code_bytecode + offset);
    const int before = drawn.memory_.calls;
    EXPECT_EQ(reader.sample().at(0).frames.size(), 2u);
    return drawn.memory_.calls - before;
  };
  for (const std::uint64_t offset : {0, 2}) calls_of(offset);
  EXPECT_EQ(calls_of(4), 1);
  EXPECT_EQ(calls_of(6), 1);
  EXPECT_EQ(calls_of(6), 1);  // and a thread that waits
}

// The frames are in other memory now, and so is the caller: the guess of the last sample is not used.
TEST(StackReaderTest, FollowsAThreadWhoseFramesHaveMoved) {
  DrawnInterpreter drawn;
  StackReader reader(drawn.memory_, drawn.layout_, kInterpreter, kCodeType);
  for (int i = 0; i < 3; ++i) reader.sample();
  constexpr std::uint64_t kOther = 0x80000;
  drawn.memory_.fill(kOther, 1024);
  drawn.draw_code(0x90000, "moved", 50);
  drawn.draw_frame(kOther + 24, kChunk + 24, 0x90000);
  drawn.memory_.put(kState + drawn.layout_.chunk, kOther);
  drawn.memory_.put(kState + drawn.layout_.chunk_top, std::uint64_t{kOther + 104});
  drawn.memory_.fill(kState + 600, 64);
  drawn.memory_.put(kState + drawn.layout_.frame, std::uint64_t{kState + 600});
  drawn.memory_.put(kState + 600 + drawn.layout_.cframe_frame, std::uint64_t{kOther + 24});
  const auto& stacks = reader.sample();
  ASSERT_EQ(stacks.size(), 1u);
  ASSERT_EQ(stacks[0].frames.size(), 2u);
  EXPECT_EQ(reader.function(stacks[0].frames[0].function).name, "moved");
  EXPECT_EQ(stacks[0].frames[0].line, 51);
  EXPECT_EQ(reader.function(stacks[0].frames[1].function).name, "outer");
  EXPECT_EQ(reader.counts().torn, 0u);
}

// The reader copies more of a chunk than is in use (a chunk has its size in it), so that deeper calls of the next sample are there.
TEST(StackReaderTest, ReadsADeeperCallInOneCall) {
  DrawnInterpreter drawn;
  drawn.memory_.put(kChunk + 8, std::uint64_t{1024});  // the chunk's size
  drawn.memory_.put(kState + drawn.layout_.chunk_top, std::uint64_t{kChunk + 208});
  drawn.draw_code(0x90000, "deeper", 50);
  StackReader reader(drawn.memory_, drawn.layout_, kInterpreter, kCodeType);
  for (int i = 0; i < 3; ++i) reader.sample();
  drawn.draw_frame(kChunk + 208, kChunk + 128, 0x90000);
  drawn.memory_.put(kState + drawn.layout_.chunk_top, std::uint64_t{kChunk + 288});
  drawn.memory_.put(kState + 400 + drawn.layout_.cframe_frame, std::uint64_t{kChunk + 208});
  reader.sample();  // reads the new code object
  drawn.memory_.put(kState + drawn.layout_.chunk_top, std::uint64_t{kChunk + 208});
  drawn.memory_.put(kState + 400 + drawn.layout_.cframe_frame, std::uint64_t{kChunk + 128});
  reader.sample();
  const int before = drawn.memory_.calls;
  drawn.memory_.put(kState + drawn.layout_.chunk_top, std::uint64_t{kChunk + 288});
  drawn.memory_.put(kState + 400 + drawn.layout_.cframe_frame, std::uint64_t{kChunk + 208});
  ASSERT_EQ(reader.sample().at(0).frames.size(), 3u);
  EXPECT_EQ(drawn.memory_.calls - before, 2);  // the second one for the head of `deeper`
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

}  // namespace
}  // namespace lanescope::sample
