#include "lanescope/sample/python_layout.h"

#include <gtest/gtest.h>

#include <map>

#include "lanescope/sample/drawn_memory_test.h"

namespace lanescope::sample {
namespace {

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
