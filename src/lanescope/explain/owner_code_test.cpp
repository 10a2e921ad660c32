#include "lanescope/explain/owner_code.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "lanescope/explain/drawn_owners_test.h"
#include "lanescope/explain/owner_advice.h"
#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/step_path.h"

namespace lanescope::explain {
namespace {

using testing::ProgramSketch;

// The time between the calls of a loop is numpy's: its frame is named, and fewer calls are no remedy. A
// little Python between the calls goes with them.
TEST(OwnerCodeTest, CodeInALoopIsNamedByItsFrame) {
  const auto loop = [](std::int64_t code_us, bool has_frames) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      for (int i = 0; i < 10; ++i) {
        p.cpu_op("aten::detach", 2).cpu_op("aten::resolve_conj", 2);
        if (has_frames)
          program.sketch().slice("python_function", "numpy/lib/histograms.py(685): histogram",
                                 us(p.cpu_us()), us(code_us));
        p.pass(code_us);
      }
    });
    const ExplainedOwners explained(program);
    EXPECT_EQ(explained.first().kind, OwnerKind::kLoop);
    EXPECT_EQ(explained.mechanism(), Mechanism::kCode);
    return std::pair(names_in(mechanism_text(explained.facts, explained.first())),
                     advice_text(explained.facts, explained.first()).pattern);
  };
  const auto [names, advice] = loop(400, true);
  EXPECT_THAT(names, ::testing::ElementsAre("lib/histograms.py:685 histogram"));
  EXPECT_THAT(advice, ::testing::Not(::testing::HasSubstr("batch all")));
  EXPECT_THAT(loop(400, false).second, ::testing::Not(::testing::HasSubstr("batch all")));
  EXPECT_THAT(loop(20, false).second, ::testing::HasSubstr("batch all"));
}

// The owners' mechanisms of steps with a hole that this frame fills; it began before the hole.
std::string holes_of_frame(const char* frame, const char* called = nullptr) {
  ProgramSketch program;
  program.steps(4, [&](ProgramSketch& p) {
    const std::int64_t start = p.cpu_us();
    p.launch({.us = 20, .op = "aten::mm"}).wait("aten::item").pass(2000);
    program.sketch().slice("python_function", frame, us(start), us(p.cpu_us() - start));
    if (called)
      program.sketch().slice("python_function", called, us(start) + 1, us(p.cpu_us() - start) - 2);
    p.launch({.us = 20, .op = "aten::add"});
  });
  const ExplainedOwners explained(program);
  std::string text;
  if (const Owners* owners = step_owners(explained.facts))
    for (const Owner& owner : owners->owners)
      if (owner.kind == OwnerKind::kCode)
        text += mechanism_text(explained.facts, owner).pattern + "\n";
  return text;
}

// The end of backward() is not code of the function that calls it, and the profiler's step() is not code of the loop.
TEST(OwnerCodeTest, CodeOfTorchAndOfTheProfilerIsNotTheProgramsOwn) {
  EXPECT_THAT(holes_of_frame("torch/optim/optimizer.py(512): wrapper"),
              ::testing::StartsWith("torch's own code in it"));
  EXPECT_EQ(holes_of_frame("lanescope/_driving.py(271): step"), "");
  EXPECT_EQ(holes_of_frame("/usr/lib/python3/site-packages/torch/profiler/profiler.py(9): step"),
            "");
  EXPECT_EQ(holes_of_frame("lanescope/_driving.py(271): step",
                           "torch/distributed/distributed_c10d.py(1333): is_initialized"),
            "");
  EXPECT_THAT(holes_of_frame("torch_train.py(9): step"),
              ::testing::Not(::testing::HasSubstr("torch's own")));
  EXPECT_NE(holes_of_frame("torch_train.py(9): step"), "");
}

// While the step is in code, another thread compresses, or the DataLoader's thread waits for its next batch: the latter is no cause.
TEST(OwnerCodeTest, AThreadThatWaitsForALockIsNotNamed) {
  const auto text = [](const char* other) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      p.launch({.us = 20, .op = "aten::mm"}).wait("aten::item");
      program.sketch().slice("python_function", other, us(p.cpu_us()), us(2000), {.tid = 200});
      p.pass(2000).launch({.us = 20, .op = "aten::add"});
    });
    const ExplainedOwners explained(program);
    EXPECT_EQ(explained.first().kind, OwnerKind::kCode);
    return mechanism_text(explained.facts, explained.first()).pattern;
  };
  EXPECT_THAT(text("<built-in function compress>"), ::testing::HasSubstr("thread {} was in {}"));
  for (const char* wait :
       {"<built-in method acquire of _thread.lock object at 0x7f>", "threading.py(355): wait"})
    EXPECT_THAT(text(wait), ::testing::Not(::testing::HasSubstr("thread {} was in {}"))) << wait;
}

// The step waits for what zlib does; not for a lock, whose holder is elsewhere, nor for torch's own code.
TEST(OwnerCodeTest, CodeOfTheProgramIsToLeaveTheStep) {
  const auto advice = [](const char* frame) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      p.cpu_op("aten::mm", 50);
      program.sketch().slice("python_function", frame, us(p.cpu_us()), us(900));
      p.pass(900).cpu_op("aten::add", 50);
    });
    const ExplainedOwners explained(program);
    EXPECT_EQ(explained.first().kind, OwnerKind::kCode);
    return advice_text(explained.facts, explained.first()).pattern;
  };
  EXPECT_THAT(advice("<built-in function compress>"), ::testing::HasSubstr("out of the step"));
  EXPECT_THAT(advice("rollout.py(12): render"), ::testing::HasSubstr("out of the step"));
  EXPECT_THAT(advice("<built-in method acquire of _thread.lock object at 0x7f>"),
              ::testing::Not(::testing::HasSubstr("out of the step")));
  for (const char* frame :
       {"<built-in function mm>", "<frozen os>(771): get"})  // aten::mm was recorded
    EXPECT_THAT(advice(frame), ::testing::Not(::testing::HasSubstr("out of the step")));
  EXPECT_THAT(advice("torch/optim/optimizer.py(9): step"),
              ::testing::Not(::testing::HasSubstr("out of the step")));
}

// A piece of 300 us without an event, of which the main thread is 200 us in the range of the DataLoader: these are its wait. A
// range of the program, and a piece that has an event, stay what they are.
TEST(StepPathTest, TimeWithoutEventsInTheRangeOfTheLoaderIsItsWait) {
  const auto kinds_in = [](const char* range, bool has_event) {
    ProgramSketch program;
    program.begin(range).pass(200).end();
    const std::int64_t end = us(program.cpu_us());
    program.pass(100).launch({.us = 10});
    const Trace trace = program.trace();
    const Facts facts = *gather_facts(trace);
    const simulate::PathPiece piece{end - us(200), end + us(100), simulate::PathKind::kHost,
                                    has_event ? SliceId{0} : kNone<SliceId>};
    std::vector<std::pair<simulate::PathKind, std::int64_t>> found;
    for (const auto& each : give_to_loader(facts, facts.main_thread, {piece}))
      found.emplace_back(each.kind, each.end_ns - each.start_ns);
    return found;
  };
  using enum simulate::PathKind;
  const char* loader = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__";
  EXPECT_THAT(kinds_in(loader, false),
              ::testing::ElementsAre(std::pair(kData, us(200)), std::pair(kHost, us(100))));
  EXPECT_THAT(kinds_in("forward", false), ::testing::ElementsAre(std::pair(kHost, us(300))));
  EXPECT_THAT(kinds_in(loader, true), ::testing::ElementsAre(std::pair(kHost, us(300))));
}

}  // namespace
}  // namespace lanescope::explain
