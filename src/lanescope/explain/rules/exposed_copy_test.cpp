#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"
#include "lanescope/explain/rules/drawn_copies_test.h"

namespace lanescope::explain {
namespace {

TEST(ExposedCopyTest, NamesTheCopyThatAddmmMakes) {
  const auto finding = find_by_rule(
      with_copy("Memcpy DtoD (Device -> Device)", 7, "aten::addmm").trace(), "exposed-copy");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 20'000);
  EXPECT_THAT(finding->arithmetic.at(0).pattern, ::testing::HasSubstr("aten::addmm"));
}

// A pageable copy must be pinned first; a pinned one only has to begin earlier.
TEST(ExposedCopyTest, AdvisesPinningOnlyWhereItIsMissing) {
  const auto action = [](std::string_view name) {
    const auto finding = find_by_rule(with_copy(name, 7, "aten::copy_").trace(), "exposed-copy");
    return finding ? finding->action.pattern : std::string();
  };
  EXPECT_THAT(action("Memcpy HtoD (Pageable -> Device)"), ::testing::HasSubstr("pin_memory()"));
  EXPECT_THAT(action("Memcpy HtoD (Pinned -> Device)"), ::testing::HasSubstr("a step ahead"));
  EXPECT_THAT(action("Memcpy HtoD (Pinned -> Device)"),
              ::testing::Not(::testing::HasSubstr("pin_memory")));
}

// Pinned copies of 60 us on a stream of their own: they start a step ahead already. Where they run next to kernels for most
// of that time, nothing is to be said.
TEST(ExposedCopyTest, KnowsThatCopiesHaveAStreamOfTheirOwn) {
  const auto found = [](std::int64_t stream, bool is_overlapped) {
    testing::ProgramSketch program;
    auto copy = testing::ProgramSketch::memcpy("Memcpy HtoD (Pinned -> Device)", 60);
    copy.stream = stream;
    program.steps(4, [&](testing::ProgramSketch& p) {
      if (is_overlapped) p.launch({.us = 60});
      p.launch(copy).pass(is_overlapped ? 20 : 80).launch({.us = 100}).pass(120);
    });
    return find_by_rule(program.trace(), "exposed-copy");
  };
  ASSERT_TRUE(found(7, false));
  EXPECT_THAT(found(7, false)->action.pattern, ::testing::HasSubstr("on a stream of its own"));
  ASSERT_TRUE(found(13, false));
  EXPECT_THAT(found(13, false)->action.pattern, ::testing::StartsWith("They have a stream"));
  EXPECT_FALSE(found(13, true));
}

// A pinned batch of float32 may be sent as bf16; one of bf16 may not become smaller.
TEST(ExposedCopyTest, AdvisesASmallerTypeOnlyWhereThereIsOne) {
  const auto action = [](std::string_view type) {
    testing::ProgramSketch program;
    program.steps(4, [&](testing::ProgramSketch& p) {
      p.begin_op("aten::copy_", {.input_dims = "[[1024]]", .input_types = std::string(type)});
      p.copy(60, 4096, "Memcpy HtoD (Pinned -> Device)").end();
      p.kernel("gemm", 100);
    });
    const auto finding = find_by_rule(program.trace(), "exposed-copy");
    return finding ? finding->action.pattern : std::string();
  };
  EXPECT_THAT(action(R"(["float"])"), ::testing::HasSubstr("send fewer bytes"));
  EXPECT_THAT(action(R"(["c10::BFloat16"])"), ::testing::HasSubstr("a step ahead"));
  EXPECT_THAT(action(R"(["c10::BFloat16"])"), ::testing::Not(::testing::HasSubstr("fewer bytes")));
}

// A DataLoader can pin what it gives; without one the program pins its own buffer.
TEST(ExposedCopyTest, NamesTheDataLoaderOnlyWhereThereIsOne) {
  const auto action = [](std::string_view range) {
    testing::ProgramSketch program;
    program.steps(4, [&](testing::ProgramSketch& p) {
      p.begin(range).pass(2).end();
      p.begin_op("aten::copy_").copy(60, 4096, "Memcpy HtoD (Pageable -> Device)").end();
      p.kernel("gemm", 100);
    });
    const auto finding = find_by_rule(program.trace(), "exposed-copy");
    return finding ? finding->action.pattern : std::string();
  };
  EXPECT_THAT(action("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"),
              ::testing::HasSubstr("DataLoader(pin_memory=True)"));
  EXPECT_THAT(action("forward"), ::testing::HasSubstr("pin_memory()"));
}

// One long copy of 60 us at one line, four of 20 us at another: the line with more time is named.
TEST(ExposedCopyTest, NamesTheOperatorAndTheLineWithMostTime) {
  testing::ProgramSketch program;
  program.steps(4, [&](testing::ProgramSketch& p) {
    const auto cloned = [&](std::string_view line, std::int64_t copy_us) {
      p.begin_op("aten::clone", {.call_stack = std::string(line)});
      p.copy(copy_us, copy_us * 1000, "Memcpy DtoD (Device -> Device)").end();
    };
    cloned("train.py(7): keep", 60);
    for (int i = 0; i < 4; ++i) cloned("train.py(9): advance", 20);
    p.kernel("gemm", 100);
  });
  const auto finding = find_by_rule(program.trace(), "exposed-copy");
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->brief.values.at(0).integer, 4);
  EXPECT_EQ(finding->brief.values.at(1).text, "aten::clone");
  EXPECT_EQ(finding->brief.values.at(2).integer, 80'000);
  EXPECT_EQ(finding->evidence.at(0).text.values.back().text, "train.py(9): advance");
}

struct DrawnSends {
  std::string_view second = "0x7f01", module = "nn.Module: Network_1", between = "aten::linear";
};

// Two modules send a tensor of 8 MB each, 60 us.
std::string action_of_sends(const DrawnSends& drawn) {
  testing::ProgramSketch program;
  program.steps(4, [&](testing::ProgramSketch& p) {
    const auto sends = [&](std::string_view module, std::string_view address) {
      const std::int64_t start_us = p.cpu_us();
      p.pass(2);
      p.begin_op("aten::to", {.input_dims = "[[1024, 2048]]", .input_types = R"(["float"])"});
      p.copy(60, 8'388'608, "Memcpy HtoD (Pinned -> Device)").end();
      const std::int64_t length_us = p.cpu_us() - start_us;
      p.sketch()
          .slice("python_function", module, testing::ProgramSketch::at(start_us), us(length_us))
          .slice("python_function",
                 "<built-in method to of Tensor object at " + std::string(address) + ">",
                 testing::ProgramSketch::at(start_us + 1), us(length_us - 1));
    };
    sends("nn.Module: Network_0", "0x7f01");
    p.begin_op(drawn.between,
               {.input_dims = "[[1024, 2048], [9, 2048]]", .input_types = R"(["float", "float"])"});
    p.kernel("gemm", 100).end();
    sends(drawn.module, drawn.second);
    p.kernel("gemm", 100);
  });
  const auto finding = find_by_rule(program.trace(), "exposed-copy");
  return finding ? finding->action.pattern : "";
}

// Another tensor, one model that gets batch after batch at one line, and parts of a batch, which may get one address in turn.
TEST(ExposedCopyTest, KnowsATensorThatTwoModulesSend) {
  const auto is_the_same = ::testing::HasSubstr("send it once");
  EXPECT_THAT(action_of_sends({}), is_the_same);
  EXPECT_THAT(action_of_sends({.second = "0x7f02"}), ::testing::HasSubstr("a step ahead"));
  EXPECT_THAT(action_of_sends({.module = "nn.Module: Network_0"}), ::testing::Not(is_the_same));
  EXPECT_THAT(action_of_sends({.between = "aten::slice"}), ::testing::Not(is_the_same));
}

TEST(ExposedCopyTest, NamesNoLineOfManyEqualOnes) {
  testing::ProgramSketch program;
  program.steps(4, [&](testing::ProgramSketch& p) {
    for (const char* line : {"a.py(1): f", "a.py(2): f", "a.py(3): f", "a.py(4): f", "a.py(5): f"})
      p.begin_op("aten::clone", {.call_stack = line})
          .copy(20, 20'000, "Memcpy DtoD (Device -> Device)")
          .end();
    p.kernel("gemm", 100);
  });
  const auto finding = find_by_rule(program.trace(), "exposed-copy");
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->brief.pattern, ::testing::HasSubstr("computes nothing"));
}

TEST(ExposedCopyTest, IsQuietWhenTheCopyRunsBesideCompute) {
  EXPECT_FALSE(find_by_rule(with_copy("Memcpy HtoD (Pinned -> Device)", 9, "aten::copy_").trace(),
                            "exposed-copy"));
}

// A sort copies what it sorts: the program cannot leave that out. What it copies itself counts alone.
TEST(ExposedCopyTest, LeavesOutWhatAnOperatorCopiesForItself) {
  const auto copied = [](std::string_view op, bool has_clone) {
    testing::ProgramSketch program;
    program.steps(4, [&](testing::ProgramSketch& p) {
      p.begin_op(op).begin_op("aten::clone");
      p.copy(60, 60'000, "Memcpy DtoD (Device -> Device)").end().kernel("k", 100).end();
      if (has_clone)
        p.begin_op("aten::clone").copy(20, 20'000, "Memcpy DtoD (Device -> Device)").end();
    });
    const auto finding = find_by_rule(program.trace(), "exposed-copy");
    return finding ? finding->at_stake_ns : 0;
  };
  EXPECT_EQ(copied("aten::sort", false), 0);
  EXPECT_EQ(copied("aten::fft_irfft2", false), 0);
  EXPECT_EQ(copied("aten::sort", true), 20'000);
  EXPECT_EQ(copied("aten::roll", false), 60'000);
}

// The program can leave out its own clone, can write otherwise into a part of a tensor, and cannot change what autograd copies.
TEST(ExposedCopyTest, KnowsWhoseCopyItIs) {
  const auto action = [](std::string_view op) {
    const auto finding =
        find_by_rule(with_copy("Memcpy DtoD (Device -> Device)", 7, op).trace(), "exposed-copy");
    return finding ? finding->action.pattern : std::string();
  };
  constexpr const char* kNode = "autograd::engine::evaluate_function: ";
  EXPECT_THAT(action("aten::clone"), ::testing::HasSubstr("leave out clone()"));
  EXPECT_THAT(action(std::string(kNode) + "torch::autograd::CopySlices"),
              ::testing::HasSubstr("x[part] = y"));
  EXPECT_THAT(action(std::string(kNode) + "PowBackward0"),
              ::testing::StartsWith("Autograd makes these copies"));
}

constexpr char kEngineNode[] = "autograd::engine::evaluate_function: ";

// A gradient penalty: the backward pass of the range `critic` is differentiated, that of `generator` is not. A clone in the range `where`.
std::string action_with_penalty(std::string_view where,
                                std::string_view second = "TanhBackwardBackward0") {
  testing::ProgramSketch program;
  std::int64_t number = 0;
  program.steps(4, [&](testing::ProgramSketch& p) {
    number += 10;
    const auto range = [&](std::string_view name, std::int64_t sequence) {
      p.begin(name).pass(1);
      if (name == where) p.begin_op("aten::clone").copy(60, 60'000).end();
      if (sequence > 0) p.begin_op("aten::tanh", {.sequence = sequence}).kernel("tanh", 20).end();
      p.end();
    };
    const auto node = [&](std::string_view name, std::int64_t sequence) -> testing::ProgramSketch& {
      return p.begin_op(kEngineNode + std::string(name), {.sequence = sequence, .fwd_thread = 1});
    };
    range("generator", number);
    range("critic", number + 1);
    node("TanhBackward0", number + 1).begin_op("aten::tanh_backward", {.sequence = number + 5});
    p.kernel("tanh", 20).end().end();
    node(second, number + 5).kernel("tanh", 20).end();
    node("TanhBackward0", number).kernel("tanh", 20).end();
    range("Optimizer.step#SGD.step", 0);
  });
  const auto finding = find_by_rule(program.trace(), "exposed-copy");
  return finding ? finding->action.pattern : std::string();
}

// torch.compile does not support double backward: only the code that is differentiated twice must do without it.
TEST(ExposedCopyTest, LeavesOutCompilingOnlyWhereABackwardPassIsDifferentiated) {
  EXPECT_THAT(action_with_penalty("critic"), ::testing::EndsWith("clone() and work on it"));
  EXPECT_THAT(action_with_penalty("generator"), ::testing::HasSubstr("let torch.compile"));
  EXPECT_THAT(action_with_penalty("Optimizer.step#SGD.step"),
              ::testing::HasSubstr("let torch.compile"));
  EXPECT_THAT(action_with_penalty("critic", "MulBackward0"),
              ::testing::HasSubstr("let torch.compile"));
}

// What AccumulateGrad copies, and the node of a view, is not of the forward code.
TEST(ExposedCopyTest, CompilesNoForwardCodeForCopiesOfAutogradsOwn) {
  const auto action = [](const std::string& node, std::string_view range) {
    testing::ProgramSketch program;
    program.steps(4, [&](testing::ProgramSketch& p) {
      p.begin(range).pass(2).end();
      p.begin_op(kEngineNode + node).copy(60, 60'000).end().kernel("gemm", 100);
    });
    const auto finding = find_by_rule(program.trace(), "exposed-copy");
    return finding ? finding->action.pattern : std::string();
  };
  EXPECT_THAT(action("torch::autograd::AccumulateGrad", "forward"),
              ::testing::StartsWith("AccumulateGrad copies"));
  EXPECT_THAT(action("torch::autograd::AccumulateGrad", "DistributedDataParallel.forward"),
              ::testing::HasSubstr("gradient_as_bucket_view=True"));
  EXPECT_THAT(action("AsStridedBackward0", "forward"), ::testing::StartsWith("A view"));
  EXPECT_THAT(action("PowBackward0", "DistributedDataParallel.forward"),
              ::testing::HasSubstr("torch.compile the forward code"));
  EXPECT_THAT(action("PowBackward0", "Torch-Compiled Region: 0/0"),
              ::testing::HasSubstr("for code that is not compiled"));
  EXPECT_THAT(action("CompiledFunctionBackward", "Torch-Compiled Region: 0/0"),
              ::testing::HasSubstr("inductor"));
}

// Parts that an activation writes are not joined with torch.cat.
TEST(ExposedCopyTest, KnowsThatAnActivationWritesIntoAView) {
  const auto action = [](std::string_view node) {
    testing::ProgramSketch program;
    program.steps(4, [&](testing::ProgramSketch& p) {
      p.begin_op(kEngineNode + std::string("torch::autograd::CopySlices"));
      p.begin_op("torch::autograd::CopySlices").begin_op("aten::copy_").copy(60, 60'000).end();
      p.begin_op(node).kernel("relu", 10).end().end().end().kernel("gemm", 100);
    });
    const auto finding = find_by_rule(program.trace(), "exposed-copy");
    return finding ? finding->action.pattern : std::string();
  };
  EXPECT_THAT(action("ReluBackward0"), ::testing::HasSubstr("not in place"));
  EXPECT_THAT(action("CopyBackwards"), ::testing::HasSubstr("torch.cat"));
}

// Filled memory is no copy of a tensor, and cuDNN fills buffers of its own.
TEST(ExposedCopyTest, TellsFillsFromCopies) {
  const auto found = [](std::string_view op) {
    testing::ProgramSketch program;
    program.steps(4, [&](testing::ProgramSketch& p) {
      p.begin_op(op).copy(60, 60'000, "Memset (Device)").kernel("k", 100).end();
    });
    return find_by_rule(program.trace(), "exposed-copy");
  };
  const auto of_convolution = found("aten::conv2d"), of_program = found("aten::zeros");
  ASSERT_TRUE(of_convolution);
  ASSERT_TRUE(of_program);
  EXPECT_THAT(of_convolution->brief.pattern, ::testing::StartsWith("Filling memory"));
  EXPECT_THAT(of_convolution->action.pattern, ::testing::StartsWith("cuDNN fills buffers"));
  EXPECT_THAT(of_program->action.pattern, ::testing::StartsWith("Use torch.empty"));
}

// A copy that is pinned already is not to be pinned.
TEST(ExposedCopyTest, DoesNotAdvisePinnedMemoryTwice) {
  const auto action = [](std::string_view name) {
    const auto finding = find_by_rule(with_copy(name, 7, "aten::copy_").trace(), "exposed-copy");
    return finding ? finding->action.pattern : std::string();
  };
  EXPECT_THAT(action("Memcpy DtoH (Device -> Pinned)"), ::testing::HasSubstr("is pinned already"));
  EXPECT_THAT(action("Memcpy DtoH (Device -> Pageable)"),
              ::testing::HasSubstr("into pinned memory"));
}

// Gloo copies what it sends and receives; no line of the program can leave these copies out.
TEST(ExposedCopyTest, IsQuietAboutCopiesOfACollective) {
  const auto find = [](std::string_view op) {
    return find_by_rule(with_copy("Memcpy DtoH (Device -> Pinned)", 7, op).trace(), "exposed-copy");
  };
  EXPECT_FALSE(find("c10d::allreduce_"));
  EXPECT_TRUE(find("aten::to"));
}

}  // namespace
}  // namespace lanescope::explain
