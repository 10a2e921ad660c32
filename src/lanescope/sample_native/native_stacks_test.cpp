#include "lanescope/sample_native/native_stacks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "lanescope/testing/sanitizers.h"

// Found by name in this test's own symbols.
extern "C" {
[[gnu::noinline]] long lanescope_test_waits(int file) {
  char byte = 0;
  const long got = read(file, &byte, 1);
  return got + byte;  // so that the call above is no tail call
}
[[gnu::noinline]] long lanescope_test_spins(const std::atomic<bool>* end) {
  long turns = 0;
  while (!end->load(std::memory_order_relaxed)) ++turns;
  return turns;
}
}

namespace lanescope::sample_native {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ParseWaitingTest, TheLastTwoNumbersAreStackAndInstruction) {
  const auto place =
      parse_waiting("230 0x0 0x0 0x7ffe8b867f80 0x0 0x0 0x0 0x7ffe8b867f68 0x7f65d1fa2503");
  ASSERT_TRUE(place);
  EXPECT_EQ(place->stack, 0x7ffe8b867f68u);
  EXPECT_EQ(place->instruction, 0x7f65d1fa2503u);
}

TEST(ParseWaitingTest, AThreadThatRunsOrWaitsElsewhereHasNoPlace) {
  for (const char* line :
       {"running", "", "-1 0x7ffe8b867f68 0x7f65d1fa2503", "230", "230 0x1",
        "230 0x0 0x7ffe8b867f68 12", "230 0x0 zz 0x1", "230 0x0 0x0 0x1", " ", "230  ", "0x 0x 0x"})
    EXPECT_FALSE(parse_waiting(line)) << line;
}

TEST(ReadableNameTest, ParametersGoAndTheRestStays) {
  EXPECT_EQ(readable_name("_ZN2at6native3addERKNS_6TensorES3_"), "at::native::add");
  EXPECT_EQ(readable_name("clock_nanosleep"), "clock_nanosleep");
  EXPECT_EQ(readable_name("_ZN12_GLOBAL__N_11fEi"), "(anonymous namespace)::f");
  EXPECT_EQ(readable_name("_ZNK3foo3barEv"), "foo::bar");
  EXPECT_EQ(readable_name("_Znot_mangled("), "_Znot_mangled(");
  EXPECT_EQ(readable_name(std::string(9000, 'x')).size(), 256u);
}

TEST(NativeFunctionTest, WhatIsNotKnownIsSaid) {
  EXPECT_EQ(text_of({.name = "f", .library = "libx.so"}), "f [libx.so]");
  EXPECT_EQ(text_of({.name = "", .library = "libx.so"}), "[libx.so]");
  EXPECT_EQ(text_of({}), "[no file]");
}

class NativeStacksTest : public ::testing::Test {
 protected:
  // Names of the functions of a thread of this process, innermost first.
  std::vector<std::string> names(const NativeStacks& stacks, const NativeStack& stack) const {
    std::vector<std::string> found;
    for (const std::uint32_t frame : stack.frames) found.push_back(stacks.function(frame).name);
    return found;
  }
  // Looks until the thread is in that function; nothing after a minute.
  std::optional<NativeStack> look_for(NativeStacks& stacks, std::uint64_t thread,
                                      const std::string& function) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (std::chrono::steady_clock::now() < end) {
      stacks.before_python();
      for (const NativeStack& stack : stacks.after_python()) {
        const auto of = names(stacks, stack);
        if (stack.thread == thread && std::find(of.begin(), of.end(), function) != of.end())
          return stack;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return std::nullopt;
  }
  void SetUp() override {
    const auto fit = stacks_.begin();
    if (!fit) GTEST_SKIP() << fit.error().message;
    if (!NativeUnwinder::is_built_in()) GTEST_SKIP() << "built without libdw";
  }

  sample::RunningProcess memory_{getpid()};
  NativeStacks stacks_{getpid(), memory_, 1'000'000};
};

TEST_F(NativeStacksTest, AThreadThatWaitsIsInTheFunctionThatCalledTheSystem) {
  if (testing::kSanitizers)
    GTEST_SKIP() << "a sanitizer's own read() calls the system, from frames of unknown length";
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::atomic<pid_t> id{0};
  std::thread waits([&] {
    pthread_setname_np(pthread_self(), "waits_here");
    id = gettid();
    lanescope_test_waits(ends[0]);
  });
  while (id == 0) std::this_thread::yield();
  const auto stack = look_for(stacks_, static_cast<std::uint64_t>(id), "lanescope_test_waits");
  ASSERT_EQ(write(ends[1], "x", 1), 1);
  waits.join();
  close(ends[0]);
  close(ends[1]);
  ASSERT_TRUE(stack);
  EXPECT_TRUE(stack->waits);
  EXPECT_EQ(stack->name, "waits_here");
  const auto of = names(stacks_, *stack);
  EXPECT_GT(std::find(of.begin(), of.end(), "lanescope_test_waits"), of.begin());  // read() inside
  // Compiled with a frame pointer, whose value is not known: the walk ends, and does not guess.
  EXPECT_FALSE(of.back() == "lanescope_test_waits" && stack->is_whole);
}

TEST_F(NativeStacksTest, AThreadThatRunsIsSeenByTheKernelsTimer) {
  std::atomic<bool> end{false};
  std::atomic<pid_t> id{0};
  std::thread spins([&] {
    id = gettid();
    lanescope_test_spins(&end);
  });
  while (id == 0) std::this_thread::yield();
  std::optional<NativeStack> stack;
  stacks_.before_python();
  static_cast<void>(stacks_.after_python());  // starts its timer
  if (stacks_.timer_refusal() == 0)
    stack = look_for(stacks_, static_cast<std::uint64_t>(id), "lanescope_test_spins");
  end = true;
  spins.join();
  if (stacks_.timer_refusal() != 0) GTEST_SKIP() << "perf_event_open is not permitted here";
  ASSERT_TRUE(stack);
  EXPECT_FALSE(stack->waits);
  EXPECT_TRUE(stack->is_whole);
}

TEST(NativeModulesTest, AnAddressOutsideOfAllFilesHasNoName) {
  NativeModules modules(getpid());
  ASSERT_TRUE(modules.refresh());
  EXPECT_EQ(modules.function(modules.function_at(1, false)), NativeFunction());
  const auto here = reinterpret_cast<std::uint64_t>(&lanescope_test_spins);
  EXPECT_EQ(modules.function(modules.function_at(here, false)).name, "lanescope_test_spins");
  // A return address directly after a function's last call belongs to that function, not to the next one.
  EXPECT_NE(modules.function(modules.function_at(here, true)).name, "lanescope_test_spins");
  EXPECT_EQ(modules.end_of_mapping(1), 0u);
}

TEST(NativeUnwinderTest, RegistersThatLeadNowhereGiveOneAddress) {
  NativeModules modules(getpid());
  ASSERT_TRUE(modules.refresh());
  NativeUnwinder unwinder(getpid());
  unwinder.use(modules);
  NativeRegisters registers;
  registers.values[NativeRegisters::kInstruction] = 0xdead;
  registers.values[NativeRegisters::kStack] = 0xbeef;
  const NativeCallers found = unwinder.walk(registers, 0xbeef, {});
  EXPECT_THAT(found.addresses, ElementsAre(0xdeadu));
  EXPECT_FALSE(found.is_whole);
  EXPECT_THAT(unwinder.walk({}, 0, {}).addresses, IsEmpty());
}

// Stacks of random words: whatever is found, it ends.
TEST(NativeUnwinderTest, AnyStackEnds) {
  NativeModules modules(getpid());
  ASSERT_TRUE(modules.refresh());
  NativeUnwinder unwinder(getpid());
  unwinder.use(modules);
  const auto code = reinterpret_cast<std::uint64_t>(&lanescope_test_waits);
  std::uint64_t random = 1;
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::uint64_t> words(512);
    for (std::uint64_t& word : words) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      word = random >> 62 == 0 ? code + (random >> 40) % 4096 : 0x7000'0000 + (random >> 50);
    }
    NativeRegisters registers;
    for (auto& value : registers.values) value = 0x7000'0000 + (random >> 52);
    registers.values[NativeRegisters::kInstruction] = code + (random >> 33) % 4096;
    const NativeCallers found =
        unwinder.walk(registers, 0x7000'0000, std::as_bytes(std::span(words)));
    EXPECT_LE(found.addresses.size(), NativeUnwinder::kMostFrames);
    EXPECT_GE(found.addresses.size(), 1u);
  }
}

}  // namespace
}  // namespace lanescope::sample_native
