#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_lock_test.h"
#include "lanescope/explain/rules/drawn_waits_test.h"

namespace lanescope::explain {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::ProgramSketch;
using ::testing::StartsWith;

ProgramSketch with_waits(bool in_the_middle) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step();
    for (int k = 0; k < 4; ++k) program.launch({.us = 50});
    if (in_the_middle) program.wait();
    for (int k = 0; k < 4; ++k) program.launch({.us = 50});
    program.end();
  }
  if (!in_the_middle) program.wait();
  return program;
}

// One .item() a step; after it the GPU is idle until the next launch has returned.
TEST(HostSyncTest, SpeaksOfItemInTheMiddleOfAStep) {
  const auto finding = find_by_rule(with_waits(true).trace(), "host-sync");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->sample_count, 3u);
  EXPECT_EQ(finding->evidence.at(0).text.values.at(0).text, "aten::item");
}

// The GPU has nothing left to do when the CPU asks: the wait is short, and the 60 us of Python after it are not its cost.
TEST(HostSyncTest, AShortWaitCostsNoMoreThanItsOperator) {
  const auto stake_ns = [](std::int64_t kernel_us) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i) {
      program.step();
      for (int k = 0; k < 4; ++k) program.launch({.us = kernel_us}).pass(20).wait().pass(60);
      program.launch({.us = kernel_us}).end();
    }
    const auto finding = find_by_rule(program.trace(), "host-sync");
    return finding ? finding->at_stake_ns : 0;
  };
  EXPECT_LE(stake_ns(5), us(40));
  EXPECT_GE(stake_ns(200), us(200));
}

// A hook on each of four gradients reads a value. Near misses: a node of another kind, and AccumulateGrad's own addition.
TEST(HostSyncTest, NamesHooksOnGradients) {
  const auto found = [](const std::string& node, const char* op) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      p.launch({.us = 100});
      for (int i = 0; i < 4; ++i) {
        p.begin_op("autograd::engine::evaluate_function: " + node).kernel("min", 60);
        p.begin_op(op).wait("aten::_local_scalar_dense").end().end().launch({.us = 50});
      }
    });
    return find_by_rule(program.trace(), "host-sync").value_or(Finding());
  };
  const Finding hooks = found("torch::autograd::AccumulateGrad", "aten::item");
  EXPECT_THAT(hooks.brief.pattern, ::testing::StartsWith("Hooks on {} gradients"));
  ASSERT_GE(hooks.brief.values.size(), 2u);
  EXPECT_EQ(hooks.brief.values[0].integer, 4);
  EXPECT_THAT(hooks.action.pattern, HasSubstr("every n steps"));
  const Finding other = found("MulBackward0", "aten::item");
  ASSERT_FALSE(other.brief.values.empty());
  EXPECT_EQ(other.brief.values[0].text, "MulBackward0");
  const Finding own = found("torch::autograd::AccumulateGrad", "aten::add_");
  ASSERT_FALSE(own.brief.values.empty());
  EXPECT_EQ(own.brief.values[0].text, "AccumulateGrad");
}

// Three results of a step are copied and waited for, one after the other. A kernel between them needs the value before it.
TEST(HostSyncTest, AdvisesOneWaitForTheResultsThatAreReadLast) {
  const auto action = [](bool launches_between) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i) {
      program.step().launch({.us = 50});
      for (int k = 0; k < 3; ++k) {
        if (launches_between) program.launch({.us = 50});
        program.launch(ProgramSketch::memcpy("Memcpy DtoH (Device -> Pageable)", 2, "aten::to"));
        program.wait("aten::to");
      }
      program.end();
    }
    const auto finding = find_by_rule(program.trace(), "host-sync");
    EXPECT_TRUE(finding);
    return finding ? finding->action.pattern : "";
  };
  EXPECT_THAT(action(false), HasSubstr("then wait once"));
  EXPECT_THAT(action(true), HasSubstr("Keep the value on the GPU"));
}

// torch.linalg checks its matrices on the CPU: the value is none of the program's.
TEST(HostSyncTest, AdvisesTheFormWithoutCheckWhereTorchChecksMatrices) {
  const auto action = [](const char* op, const char* inner) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i) {
      program.step().launch({.us = 50}).begin_op(op).begin_op(inner).wait().end().end();
      program.launch({.us = 50}).end();
    }
    const auto finding = find_by_rule(program.trace(), "host-sync");
    EXPECT_TRUE(finding);
    return finding ? finding->action : Sentence{};
  };
  const Sentence known = action("aten::linalg_inv", "aten::_linalg_check_errors");
  EXPECT_THAT(known.pattern, HasSubstr("does not wait to check"));
  ASSERT_EQ(known.values.size(), 1u);
  EXPECT_EQ(known.values[0].text, "torch.linalg.inv_ex");
  EXPECT_THAT(action("aten::linalg_eigh", "aten::_linalg_check_errors").pattern,
              HasSubstr("one batched call"));
  EXPECT_THAT(action("aten::linalg_inv", "aten::any").pattern, HasSubstr("Keep the value"));
}

// One sample a microsecond. A launch takes the CPU 10 us, a kernel 50. When a step begins, 170 us of the
// step before are left on the GPU; 40 us later the CPU waits for 130 us of them and four kernels: 330
// us, in three steady steps.
TEST(HostSyncTest, NamesThePythonLineThatWaits) {
  ProgramSketch program = with_waits(true);
  sampled(program, {.function = "train.py(1): step", .self = 30'000});
  const auto finding = find_by_rule(program.trace(), "host-sync");
  ASSERT_TRUE(finding);
  const auto line = std::find_if(
      finding->arithmetic.begin(), finding->arithmetic.end(), [](const Sentence& each) {
        return each.pattern.starts_with("samples of the launching thread's Python stack in these");
      });
  ASSERT_NE(line, finding->arithmetic.end());
  EXPECT_NEAR(static_cast<double>(line->values.at(1).integer), 3 * 330, 6);
  EXPECT_EQ(line->values.at(1).integer, line->values.at(2).integer);
  EXPECT_EQ(line->values.at(3).text, "train.py(1): step");
}

// Half a millisecond of the CPU's own work after each wait stays without it. Of the 510 us of a
// gap (the next launch call ends 510 us after the last kernel) count the 80 us that the device
// works in a step and the 72 us of the operator that waits (70 us until the device is done, 2 us
// more and its call's edges): 152 us.
TEST(HostSyncTest, CountsWhatTheCpuCouldHaveDoneMeanwhile) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i)
    program.step().launch({.us = 40}).wait().pass(500).launch({.us = 40}).end();
  const auto finding = find_by_rule(program.trace(), "host-sync");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 152'000);
  EXPECT_EQ(finding->evidence.at(0).text.values.at(3).integer, 510'000);
}

// cuDNN waits by itself while it tries out algorithms.
TEST(HostSyncTest, IsQuietAboutWaitsInsideAConvolution) {
  const auto program = [](const char* asker) {
    ProgramSketch sketch;
    for (int i = 0; i < 4; ++i)
      sketch.step().launch({.us = 40}).wait(asker).pass(500).launch({.us = 40}).end();
    return sketch.trace();
  };
  EXPECT_TRUE(find_by_rule(program("aten::item"), "host-sync"));
  EXPECT_FALSE(find_by_rule(program("aten::cudnn_convolution"), "host-sync"));
}

TEST(HostSyncTest, NamesTheLineOfTheProgramThatWaits) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i)
    program.step()
        .launch({.us = 40})
        .wait("aten::item", "torch/_tensor.py(12): item;train.py(31): step;train.py(80): main")
        .launch({.us = 40})
        .end();
  const auto finding = find_by_rule(program.trace(), "host-sync");
  ASSERT_TRUE(finding);
  const Sentence& text = finding->evidence.at(0).text;
  EXPECT_THAT(text.pattern, ::testing::HasSubstr("called at {}"));
  EXPECT_EQ(text.values.back().text, "train.py(31): step");
}

// Calls of a runtime whose waiting calls are not known: that nothing waits is not certain.
TEST(HostSyncTest, IsNotCheckedWhereTheNamesOfWaitsAreNotKnown) {
  const auto trace = [](std::string_view launch, std::string_view wait) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i)
      program.step().launch({.us = 40, .call = launch}).call(wait, 60).pass(50).end();
    return program.trace();
  };
  EXPECT_EQ(state_of_rule(trace("vendorLaunchKernel", "vendorSynchronize"), "host-sync"),
            RuleRun::State::kNotChecked);
  EXPECT_EQ(state_of_rule(trace("cudaLaunchKernel", "cudaEventQuery"), "host-sync"),
            RuleRun::State::kQuiet);
  EXPECT_EQ(state_of_rule(trace("zeCommandListAppendLaunchKernel", "zeEventHostSynchronize"),
                          "host-sync"),
            RuleRun::State::kFound);
}

TEST(HostSyncTest, IsQuietAboutTheWaitAtTheEnd) {
  EXPECT_FALSE(find_by_rule(with_waits(false).trace(), "host-sync"));
}

TEST(HostSyncTest, AnOperatorThatWaitsTwiceCountsOnce) {
  const auto finding = find_by_rule(waiting(2, false).trace(), "host-sync");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->arithmetic.at(0).values.at(2).integer, us(600));
}

// Old traces record the step's range as an operator. It is not the operator that waits.
TEST(HostSyncTest, TheRangeOfAStepIsNoOperator) {
  ProgramSketch program;
  for (int i = 1; i <= 4; ++i) {
    const std::int64_t start = program.cpu_us();
    program.launch({.us = 100}).call("cudaStreamSynchronize", 300).pass(50).launch({.us = 100});
    program.sketch().op("ProfilerStep#" + std::to_string(i), us(start),
                        us(program.cpu_us() - start));
  }
  const auto finding = find_by_rule(program.trace(), "host-sync");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->evidence.at(0).text.values.at(0).text, "cudaStreamSynchronize");
}

// After each wait of 300 us the CPU frees memory for 1 ms, waits for a batch, or only thinks: the
// first two are no part of what the wait costs.
TEST(HostSyncTest, FreeingMemoryOrWaitingForABatchIsNotTheWaitsCost) {
  enum class Does { kThink, kFree, kLoad };
  const auto idle_after = [](Does does) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i) {
      program.step().launch({.us = 100}).call("cudaStreamSynchronize", 300);
      if (does == Does::kLoad) program.begin("enumerate(DataLoader)#_SingleProcess.__next__");
      if (does == Does::kFree)
        program.call("cudaFree", 1000);
      else
        program.pass(1000);
      if (does == Does::kLoad) program.end();
      program.pass(50).launch({.us = 100}).end();
    }
    const auto finding = find_by_rule(program.trace(), "host-sync");
    EXPECT_TRUE(finding);
    return finding ? finding->verdict.values.at(1).integer : 0;
  };
  EXPECT_EQ(idle_after(Does::kThink) - idle_after(Does::kFree), us(1000));
  EXPECT_EQ(idle_after(Does::kThink) - idle_after(Does::kLoad), us(1000));
}

std::optional<Finding> host_sync_of(std::string_view wait, std::string_view launch) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i)
    program.step().launch({.us = 40, .call = launch}).call(wait, 60).pass(50).end();
  return find_by_rule(program.trace(), "host-sync");
}

TEST(HostSyncTest, KnowsCopiesThatBlockAndWaitsOfXpus) {
  for (const char* wait : {"cuMemcpyDtoH_v2", "cudaMemcpy2D", "hipMemcpyDtoH"}) {
    const auto copy = host_sync_of(wait, "cudaLaunchKernel");
    ASSERT_TRUE(copy) << wait;
    EXPECT_THAT(copy->action.pattern, HasSubstr("read it")) << wait;
  }
  EXPECT_TRUE(host_sync_of("urEventWait", "urEnqueueKernelLaunch"));
  EXPECT_TRUE(host_sync_of("urQueueFinish", "zeCommandListAppendLaunchKernel"));
  EXPECT_FALSE(host_sync_of("cuMemcpyDtoD_v2", "cudaLaunchKernel"));
  const auto versioned = host_sync_of("cudaDeviceSynchronize_v3020", "cudaLaunchKernel_v7000");
  ASSERT_TRUE(versioned);
  EXPECT_THAT(versioned->action.pattern, ::testing::StartsWith("Remove torch.cuda.synchronize"));
  const auto stream = host_sync_of("cudaStreamSynchronize_v3020", "cudaLaunchKernel_v7000");
  ASSERT_TRUE(stream);
  EXPECT_THAT(stream->action.pattern, ::testing::StartsWith("Let a stream wait"));
}

// After each wait of 300 us the CPU gives memory back for 1 ms, which is allocator-calls' matter.
TEST(HostSyncTest, LeavesEveryCallForMemoryOut) {
  const auto idle_after = [](std::string_view call) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i)
      program.step()
          .launch({.us = 100})
          .call("cudaStreamSynchronize", 300)
          .call(call, 1000)
          .launch({.us = 100})
          .end();
    const auto finding = find_by_rule(program.trace(), "host-sync");
    EXPECT_TRUE(finding);
    return finding ? finding->verdict.values.at(1).integer : 0;
  };
  EXPECT_EQ(idle_after("cudaGetLastError") - idle_after("cuMemFree_v2"), us(1000));
}

// Six reads of a matrix cost most, 60 indices on the CPU nearly as much. "A step later" is nothing for copies to the GPU.
TEST(HostSyncTest, AdvisesOneCopyOfIndicesNextToReads) {
  const auto action = [](std::string_view op) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      for (int i = 0; i < 2; ++i) {
        p.launch({.us = 50}).begin_op("aten::to");
        p.copy(2, 4096, "Memcpy DtoH (Device -> Pageable)").wait("aten::copy_").end().pass(300);
        for (int k = 0; k < 10; ++k) {
          p.begin_op(op).copy(2, 64, "Memcpy HtoD (Pageable -> Device)").wait("aten::copy_");
          p.end().pass(20);
        }
      }
      p.launch({.us = 50});
    });
    const auto finding = find_by_rule(program.trace(), "host-sync");
    EXPECT_TRUE(finding);
    return finding ? finding->action.pattern : "";
  };
  EXPECT_THAT(action("aten::index"), StartsWith("x[i] with i on the CPU copies i"));
  EXPECT_THAT(action("aten::relu"), Not(HasSubstr("i on the CPU")));
}

// A wait of 2 ms, then work that the CPU does alone. Had it not waited, the GPU would still work meanwhile.
TEST(HostSyncTest, CountsTheLeadThatAWaitTakesAway) {
  const auto at_stake = [](bool waits, std::int64_t work_us) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      p.launch({.us = 2000});
      if (waits) p.wait();
      p.launch({.us = 10}).cpu_op("aten::log1p", work_us).launch({.us = 10});
    });
    const auto finding = find_by_rule(program.trace(), "host-sync");
    return finding ? finding->at_stake_ns : 0;
  };
  // At most what the wait took, and at most what the CPU works later.
  EXPECT_GT(at_stake(true, 5000), us(1900));
  EXPECT_LT(at_stake(true, 5000), us(2200));
  EXPECT_GT(at_stake(true, 500), us(400));
  EXPECT_LT(at_stake(true, 500), us(700));
  EXPECT_EQ(at_stake(false, 5000), 0);
}

// The wait of the last step ends the recording: it costs nothing, and still is one per step.
TEST(HostSyncTest, CountsTheWaitOfTheLastStepToo) {
  ProgramSketch program;
  for (int i = 0; i < 6; ++i)
    program.step().launch({.us = 100}).pass(50).launch({.us = 100}).wait("aten::item").end();
  const auto finding = find_by_rule(program.trace(), "host-sync");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->brief.pattern, "{} makes the CPU wait for the GPU, once per step");
}

// A program without operators: a copy to pageable memory and the synchronisation right after it are one wait, by the copy's name.
// With a launch between them they are two. A copy to pinned memory does not wait, so the synchronisation has its own name.
TEST(HostSyncTest, CountsACopyAndItsSynchronisationOnceWithoutOperators) {
  const auto finding_with = [](const std::string& copy, bool launches_between) {
    ProgramSketch program;
    for (std::int64_t i = 0; i < 4; ++i) {
      program.step();
      for (int k = 0; k < 4; ++k) program.kernel("gemm", 100);
      // The GPU has 400 us of work; the copy comes after it.
      const std::int64_t now_us = program.cpu_us(), correlation = 1000 + i;
      program.sketch().runtime("cudaMemcpyAsync", us(now_us), us(5), {.correlation = correlation});
      program.sketch().slice("gpu_memcpy", copy, us(now_us + 398), us(10),
                             {.stream = 7, .correlation = correlation, .bytes = 1'000'000});
      program.pass(5);
      if (launches_between) program.kernel("gemm", 1);
      program.call("cudaStreamSynchronize", 410).pass(50).kernel("gemm", 100).pass(120).end();
    }
    return find_by_rule(program.trace(), "host-sync");
  };
  const auto pair = finding_with("Memcpy DtoH (Device -> Pageable)", false);
  ASSERT_TRUE(pair);
  EXPECT_EQ(pair->sample_count, 3u);
  EXPECT_EQ(pair->brief.pattern, "{} makes the CPU wait for the GPU, once per step");
  EXPECT_EQ(pair->brief.values.at(0).text, "cudaMemcpyAsync");
  const auto apart = finding_with("Memcpy DtoH (Device -> Pageable)", true);
  ASSERT_TRUE(apart);
  EXPECT_EQ(apart->sample_count, 6u);
  const auto pinned = finding_with("Memcpy DtoH (Device -> Pinned)", false);
  ASSERT_TRUE(pinned);
  EXPECT_EQ(pinned->sample_count, 3u);
  EXPECT_EQ(pinned->brief.values.at(0).text, "cudaStreamSynchronize");
}

// An upload and a read by one operator are two things: the read does not end with pinned memory.
TEST(HostSyncTest, TellsUploadsFromReadsOfTheSameOperator) {
  ProgramSketch program;
  for (int i = 0; i < 4; ++i) {
    program.step().launch({.us = 100});
    std::int64_t start = program.cpu_us();
    program.launch(ProgramSketch::memcpy("Memcpy HtoD (Pageable -> Device)", 5))
        .call("cudaStreamSynchronize", 300);
    program.sketch().op("aten::to", us(start), us(program.cpu_us() - start));
    program.pass(20).launch({.us = 100});
    start = program.cpu_us();
    program.pass(1).call("cudaStreamSynchronize", 500);
    program.sketch().op("aten::to", us(start), us(program.cpu_us() - start));
    program.pass(50).launch({.us = 100}).end();
  }
  const auto finding = find_by_rule(program.trace(), "host-sync");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->brief.pattern, "{} makes the CPU wait for the GPU, once per step");
}

// Each stream is waited for before the next one gets work.
TEST(HostSyncTest, KnowsStreamsThatAreWaitedForInTurn) {
  const auto action = [](bool in_turn) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      for (int stream = 7; stream < 11; ++stream) {
        p.launch({.us = 200, .stream = in_turn ? stream : 7});
        p.call("cudaStreamSynchronize", 200).pass(20);
      }
      p.launch({.us = 5, .stream = in_turn ? 12 : 7});
    });
    const auto finding = find_by_rule(program.trace(), "host-sync");
    return finding ? finding->action.pattern : std::string();
  };
  EXPECT_TRUE(action(true).starts_with("Launch on all streams first"));
  EXPECT_TRUE(action(false).starts_with("Let a stream wait"));
}

// All operators whose waits cost a tenth or more are named, with all of their waits.
TEST(HostSyncTest, NamesEachOperatorWhoseWaitsCost) {
  const auto brief = [](std::int64_t second_us) {
    ProgramSketch program;
    for (int i = 0; i < 4; ++i) {
      program.step();
      for (int k = 0; k < 4; ++k) program.launch({.us = 200});
      program.wait("aten::to").pass(100).launch({.us = second_us}).wait("aten::item");
      program.pass(second_us == 200 ? 80 : 1).launch({.us = 200}).end();
    }
    const auto finding = find_by_rule(program.trace(), "host-sync");
    EXPECT_TRUE(finding);
    return finding ? finding->brief : Sentence{};
  };
  const Sentence both = brief(200);
  EXPECT_THAT(both.pattern, HasSubstr("{} and {} make the CPU wait"));
  EXPECT_EQ(both.values.at(2).integer, 2);  // per step
}

// One copy to the GPU of 300 us after which the GPU idles longest, then 40 reads of the elements of a result. With kernels
// between the reads they are no results. With 4 reads, or where they are less than a third of the cost, the copy comes first.
TEST(HostSyncTest, ManyReadsOfOneResultComeBeforeOneCopy) {
  const auto finding_of = [](int reads, bool computes, std::int64_t after_copy_us = 300) {
    ProgramSketch program;
    program.steps(4, [&](ProgramSketch& p) {
      p.begin_op("aten::to").copy(300, 1 << 20, "Memcpy HtoD (Pageable -> Device)");
      p.call("cudaStreamSynchronize", 320).end();
      p.pass(after_copy_us).kernel("gemm", 50);
      for (int i = 0; i < reads; ++i) {
        if (computes) p.op("aten::mm", {}, "gemm", 5);
        p.wait("aten::item").pass(5);
      }
      p.kernel("gemm", 5);
    });
    return find_by_rule(program.trace(), "host-sync");
  };
  const auto many = finding_of(40, false);
  ASSERT_TRUE(many);
  EXPECT_EQ(many->brief.values.at(0).text, "aten::item");
  EXPECT_THAT(many->action.pattern, ::testing::HasSubstr(".tolist()"));
  const auto computed = finding_of(40, true);
  ASSERT_TRUE(computed);
  EXPECT_THAT(computed->action.pattern, ::testing::Not(::testing::HasSubstr(".tolist()")));
  const auto few = finding_of(4, false);
  ASSERT_TRUE(few);
  EXPECT_EQ(few->brief.values.at(0).text, "aten::to");
  const auto cheap = finding_of(40, false, 1500);
  ASSERT_TRUE(cheap);
  EXPECT_EQ(cheap->brief.values.at(0).text, "aten::to");
}

}  // namespace
}  // namespace lanescope::explain
