#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_waits_test.h"

namespace lanescope::explain {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::ProgramSketch;
using ::testing::StartsWith;

// A table that the CPU makes in each round, and then copies. Near miss: a batch that was there before.
TEST(WaitRemediesTest, TablesThatTheCpuMakesAreMadeOnTheGpu) {
  const auto action = [](bool makes) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      for (int i = 0; i < 4; ++i) {
        if (makes) p.cpu_op("aten::arange", 20).cpu_op("aten::cos", 20);
        p.launch({.us = 100});
        if (makes) p.cpu_op("aten::arange", 20).cpu_op("aten::cos", 20);
        p.begin_op("aten::to").copy(5, 1'000'000, "Memcpy HtoD (Pageable -> Device)");
        p.wait("aten::copy_").end().launch({.us = 50});
      }
    });
    return find_by_rule(program.trace(), "host-sync").value_or(Finding()).action.pattern;
  };
  EXPECT_THAT(action(true), HasSubstr("device=x.device"));
  EXPECT_THAT(action(false), Not(HasSubstr("device=x.device")));
}

// torch.distributions: all values of a comparison, then Python asks.
TEST(WaitRemediesTest, ChecksOfArgumentsCanBeSwitchedOff) {
  const auto action = [](std::string_view before) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i) {
      program.step().launch({.us = 100}).cpu_op(before, 2).wait("aten::is_nonzero").pass(50);
      program.launch({.us = 100}).end();
    }
    const auto finding = find_by_rule(program.trace(), "host-sync");
    return finding ? finding->action.pattern : std::string();
  };
  EXPECT_THAT(action("aten::_is_all_true"), HasSubstr("set_default_validate_args(False)"));
  EXPECT_THAT(action("aten::gt"), HasSubstr("Keep the value on the GPU"));
}

// What is read last cannot be read any later in its step.
TEST(WaitRemediesTest, AdvisesToReadAStepLaterWhatIsReadLast) {
  const auto action = [](int launches_after) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i) {
      program.step().launch({.us = 50}).wait();
      for (int k = 0; k < launches_after; ++k) program.launch({.us = 50});
      program.end();
    }
    const auto finding = find_by_rule(program.trace(), "host-sync");
    EXPECT_TRUE(finding);
    return finding ? finding->action.pattern : "";
  };
  EXPECT_THAT(action(0), HasSubstr("a step later"));
  EXPECT_THAT(action(1), Not(HasSubstr("a step later")));
}

TEST(WaitRemediesTest, AdvisesAboutValuesThatALoopReads) {
  const auto action = [](int reads) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i) {
      program.step();
      for (int k = 0; k < reads; ++k) program.launch({.us = 20}).wait("aten::is_nonzero");
      program.launch({.us = 50}).end();
    }
    const auto finding = find_by_rule(program.trace(), "host-sync");
    EXPECT_TRUE(finding);
    return finding ? finding->action.pattern : "";
  };
  EXPECT_THAT(action(20), HasSubstr("at once on the GPU"));
  EXPECT_THAT(action(4), Not(HasSubstr("at once on the GPU")));
}

// 20 thresholds, each compared with all scores: one operation could try all. Not so where nothing is compared, or where a round
// does more than to count.
TEST(WaitRemediesTest, AdvisesToTryAllLimitsOfASearchAtOnce) {
  const auto action = [](const char* op, const char* next = "aten::sum") {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      p.launch({.us = 50, .op = "aten::relu"});
      for (int i = 0; i < 20; ++i)
        p.launch({.us = 2, .op = op}).launch({.us = 2, .op = next}).wait("aten::item");
    });
    const auto finding = find_by_rule(program.trace(), "host-sync");
    EXPECT_TRUE(finding);
    return finding ? finding->action : Sentence{};
  };
  const Sentence search = action("aten::gt");
  EXPECT_THAT(search.pattern, HasSubstr("try all {} at once"));
  ASSERT_EQ(search.values.size(), 1u);
  EXPECT_EQ(search.values[0].integer, 20);
  EXPECT_THAT(action("aten::mul").pattern, HasSubstr("at once on the GPU"));
  EXPECT_THAT(action("aten::gt", "aten::multinomial").pattern, HasSubstr("at once on the GPU"));
}

// What comes in one copy may be needed at once, as the sizes of slices are; a single number is more often printed.
TEST(WaitRemediesTest, DoesNotAdviseToKeepWhatComesInOneCopy) {
  const auto action = [](std::int64_t size_bytes) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i) {
      program.step().launch({.us = 50}).begin_op("aten::to");
      program.copy(2, size_bytes, "Memcpy DtoH (Device -> Pageable)").wait("aten::copy_").end();
      program.launch({.us = 50}).end();
    }
    const auto finding = find_by_rule(program.trace(), "host-sync");
    EXPECT_TRUE(finding);
    return finding ? finding->action.pattern : "";
  };
  EXPECT_THAT(action(384), HasSubstr("one copy is right"));
  EXPECT_THAT(action(8), HasSubstr("Keep the value"));
}

// A loss may be read every n steps. What a step without training reads is rather its result.
TEST(WaitRemediesTest, AdvisesToReadRarelyOnlyWhereTheProgramTrains) {
  const auto action = [](bool has_optimizer, bool at_end) {
    ProgramSketch program;
    for (int i = 0; i < 6; ++i) {
      program.step().launch({.us = 100});
      if (has_optimizer) program.begin("Optimizer.step#SGD.step").launch({.us = 20}).end();
      program.wait("aten::item").pass(50);
      if (!at_end) program.launch({.us = 100});
      program.end();
    }
    const auto finding = find_by_rule(program.trace(), "host-sync");
    EXPECT_TRUE(finding);
    return finding ? finding->action.pattern : "";
  };
  for (const bool at_end : {false, true}) {
    EXPECT_THAT(action(true, at_end), HasSubstr("every n steps"));
    EXPECT_THAT(action(false, at_end), Not(HasSubstr("every n steps")));
  }
}

TEST(WaitRemediesTest, AdviceForUploadsIsPinnedMemoryAndForValuesIsNot) {
  const auto upload = find_by_rule(waiting(1, true).trace(), "host-sync");
  ASSERT_TRUE(upload);
  EXPECT_THAT(upload->try_next, Contains(HasSubstr("pinned memory")));
  EXPECT_THAT(upload->try_next, Not(Contains(HasSubstr(".item()"))));
  const auto value = find_by_rule(waiting(1, false).trace(), "host-sync");
  ASSERT_TRUE(value);
  EXPECT_THAT(value->try_next, Not(Contains(HasSubstr("pinned memory"))));
  EXPECT_THAT(value->try_next, Contains(HasSubstr(".item()")));
}

// 16 tensors of 64 bytes, one by one; larger ones are a matter of pinned memory.
TEST(WaitRemediesTest, ManySmallUploadsAreOneCopyOfAll) {
  const auto action = [](std::int64_t size_bytes) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      for (int i = 0; i < 16; ++i) {
        p.begin_op("aten::to").copy(5, size_bytes, "Memcpy HtoD (Pageable -> Device)");
        p.call("cudaStreamSynchronize", 20).end();
        p.pass(20).kernel("gemm", 5);
      }
    });
    const auto finding = find_by_rule(program.trace(), "host-sync");
    return finding ? finding->action.pattern : std::string();
  };
  EXPECT_THAT(action(64), ::testing::StartsWith("If known ahead: join them"));
  EXPECT_THAT(action(1 << 20), ::testing::HasSubstr("Use pinned memory"));
}

// x[index] = 0: the number is a tensor of 8 bytes on the CPU. A table of 1 MiB can be pinned.
TEST(WaitRemediesTest, ANumberIsNotPinned) {
  const auto action = [](std::string_view op, std::int64_t size_bytes,
                         const std::string& dims = {}) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      p.launch({.us = 200}).begin_op(op, {.input_dims = dims});
      p.copy(5, size_bytes, "Memcpy HtoD (Pageable -> Device)").wait("aten::copy_");
      p.end().pass(50).launch({.us = 100});
    });
    const auto finding = find_by_rule(program.trace(), "host-sync");
    return finding ? finding->action.pattern : std::string();
  };
  EXPECT_THAT(action("aten::index_put_", 8), HasSubstr("index_fill_"));
  EXPECT_THAT(action("aten::to", 8), HasSubstr("make it on the GPU"));
  // The labels of a batch are several numbers, as their bytes or their shape show.
  EXPECT_THAT(action("aten::to", 16), ::testing::StartsWith("A few bytes per copy"));
  EXPECT_THAT(action("aten::to", 8, "[[2]]"), ::testing::StartsWith("A few bytes per copy"));
  EXPECT_THAT(action("aten::to", 8, "[[]]"), HasSubstr("make it on the GPU"));
  EXPECT_THAT(action("aten::index_put_", 1 << 20), ::testing::StartsWith("Use pinned memory"));
}

// Nobody can pin what a conversion copies for itself.
TEST(WaitRemediesTest, DoesNotAdviseToPinWhatAConversionCopies) {
  const auto found = [](const char* op) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i) {
      program.step().launch({.us = 50}).begin_op(op);
      program.copy(2, 4096, "Memcpy HtoD (Pageable -> Device)").wait("aten::copy_").end();
      program.launch({.us = 50}).end();
    }
    return find_by_rule(program.trace(), "host-sync");
  };
  const auto conversion = found("aten::to_sparse_csr"), copy = found("aten::to");
  ASSERT_TRUE(conversion);
  ASSERT_TRUE(copy);
  EXPECT_THAT(conversion->action.pattern, HasSubstr("convert it once"));
  EXPECT_THAT(conversion->try_next, Not(Contains(HasSubstr("pinned"))));
  EXPECT_THAT(copy->action.pattern, HasSubstr("pinned memory"));
}

}  // namespace
}  // namespace lanescope::explain
