// The rules about single kernels, each on a drawn program in which it must speak and on near misses
// in which it must not. Drawn on an H200: 132 multiprocessors, bf16 989.5 T/s, TF32 494.5 T/s,
// float32 67 T/s, 4.8 TB/s.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "lanescope/explain/run_rules.h"
#include "lanescope/testing/sketch.h"

namespace lanescope::explain {
namespace {

using testing::Fields;
using ::testing::HasSubstr;

constexpr char kH200[] =
    R"([{"id": 0, "name": "NVIDIA H200", "computeMajor": 9, "computeMinor": 0, "numSms": 132,
        "maxThreadsPerMultiprocessor": 2048, "regsPerMultiprocessor": 65536, "warpSize": 32,
        "sharedMemPerMultiprocessor": 233472}])";
constexpr char kBf16[] = R"(["c10::BFloat16", "c10::BFloat16"])";
constexpr char kFloat[] = R"(["float", "float"])";
constexpr char kSquare[] = "[[4096, 4096], [4096, 4096]]";
constexpr char kNvjet[] = "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT";

Fields shapes(std::string_view dims, std::string_view types, std::string_view strides = {}) {
  return {.input_dims = std::string(dims),
          .input_types = std::string(types),
          .input_strides = std::string(strides)};
}
Fields grid(std::int64_t blocks, std::int64_t threads = 256, std::int64_t registers = 32) {
  return {.grid = "[" + std::to_string(blocks) + ", 1, 1]",
          .block = "[" + std::to_string(threads) + ", 1, 1]",
          .registers = registers,
          .shared_bytes = 0};
}

// One CPU thread that is always ahead, one GPU that works without a pause. Microseconds.
class Program {
 public:
  explicit Program(std::string_view devices = kH200) {
    if (!devices.empty()) sketch_.metadata("deviceProperties", devices);
  }
  Program& begin(std::string_view op, const Fields& inputs = {}) {
    open_.push_back({std::string(op), cpu_, inputs});
    ++cpu_;
    return *this;
  }
  Program& end() {
    const Open& op = open_.back();
    ++cpu_;
    sketch_.op(op.name, op.start * 1000, (cpu_ - op.start) * 1000, op.inputs);
    open_.pop_back();
    return *this;
  }
  Program& call(std::string_view name) {
    sketch_.runtime(name, cpu_ * 1000, 1000);
    ++cpu_;
    return *this;
  }
  Program& pass(std::int64_t us) {
    cpu_ += us;
    return *this;
  }
  Program& work(std::string_view category, std::string_view name, std::int64_t us, Fields fields) {
    fields.correlation = ++correlation_;
    std::int64_t& gpu = fields.stream == 7 ? gpu_ : other_gpu_;
    const std::int64_t start = std::max(cpu_ + 2, gpu);
    sketch_.runtime("cudaLaunchKernel", cpu_ * 1000, 1000, {.correlation = correlation_});
    sketch_.slice(category, name, start * 1000, us * 1000, fields);
    gpu = start + us;
    ++cpu_;
    return *this;
  }
  Program& kernel(std::string_view name, std::int64_t us, const Fields& launch = grid(1320)) {
    return work("kernel", name, us, launch);
  }
  Program& copy(std::int64_t us, std::int64_t size_bytes) {
    return work("gpu_memcpy", "Memcpy DtoD (Device -> Device)", us, {.bytes = size_bytes});
  }
  // An operator with one kernel in it.
  Program& op(std::string_view name, const Fields& inputs, std::string_view kernel_name,
              std::int64_t us, const Fields& launch = grid(1320)) {
    return begin(name, inputs).kernel(kernel_name, us, launch).end();
  }
  // Four steps of the same; the first does not count.
  Trace steps(const std::function<void(Program&)>& body) {
    for (int i = 1; i <= 4; ++i) {
      const std::int64_t start = cpu_;
      body(*this);
      ++cpu_;
      sketch_.annotation("ProfilerStep#" + std::to_string(i), start * 1000, (cpu_ - start) * 1000);
    }
    return sketch_.trace();
  }

 private:
  struct Open {
    std::string name;
    std::int64_t start;
    Fields inputs;
  };
  testing::Sketch sketch_;
  std::vector<Open> open_;
  std::int64_t cpu_ = 1000, gpu_ = 0, other_gpu_ = 0, correlation_ = 0;
};

Explanation explain(const Trace& trace, const std::string& rule) {
  const auto facts = gather_facts(trace);
  EXPECT_TRUE(facts);
  auto explanation = run_rules(*facts, {.only = {rule}, .off = {}});
  EXPECT_TRUE(explanation);
  return std::move(*explanation);
}

std::optional<Finding> find(const std::string& rule, const std::function<void(Program&)>& body,
                            std::string_view devices = kH200) {
  Program program(devices);
  const Trace trace = program.steps(body);
  const Explanation explanation = explain(trace, rule);
  if (explanation.findings.empty()) return std::nullopt;
  return explanation.findings[0];
}

RuleRun::State state_of(const std::string& rule, const std::function<void(Program&)>& body,
                        std::string_view devices = kH200) {
  Program program(devices);
  const Trace trace = program.steps(body);
  return explain(trace, rule).runs.at(0).state;
}

// --- copy-before-gemm

constexpr char kAddmmDims[] = "[[4096, 4096], [4096, 4096], [4096, 4096], [], []]";
constexpr char kAddmmTypes[] =
    R"(["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "Scalar", "Scalar"])";

// 4096 * 4096 * 2 bytes before a matmul of 200 us.
TEST(CopyBeforeGemmTest, ExplainsTheCopyThatAddmmMakes) {
  const auto finding = find("copy-before-gemm", [](Program& p) {
    p.begin("aten::addmm", shapes(kAddmmDims, kAddmmTypes));
    p.copy(20, 33'554'432).kernel(kNvjet, 180).end();
  });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kCost);
  EXPECT_EQ(finding->verdict.values[0].integer, 3);
  // 2 * 4096^3 operations take an H200 138.9 us of the matmul's 180: reading the matrix again may
  // cost up to the copy's 20 us.
  EXPECT_EQ(finding->at_stake_ns, 20'000 + 20'000);
  EXPECT_EQ(finding->arithmetic.at(0).values[0].integer, 3 * 33'554'432);
}

// 2 * 4096^3 / 989.5e12 is 138,897 ns: of a matmul of 150 us only what is above that can be due to
// the matrix that it reads.
TEST(CopyBeforeGemmTest, TheMatmulCannotBeFasterThanItsOperations) {
  const auto finding = find("copy-before-gemm", [](Program& p) {
    p.begin("aten::addmm", shapes(kAddmmDims, kAddmmTypes));
    p.copy(20, 33'554'432).kernel(kNvjet, 150).end();
  });
  ASSERT_TRUE(finding);
  EXPECT_NEAR(static_cast<double>(finding->at_stake_ns), 20'000 + (150'000 - 138'897), 1);
}

TEST(CopyBeforeGemmTest, IsNormalWhenItCostsNothing) {
  const auto finding = find("copy-before-gemm", [](Program& p) {
    p.begin("aten::addmm", shapes(kAddmmDims, kAddmmTypes));
    p.copy(1, 33'554'432).kernel(kNvjet, 180).end();
  });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kNormal);
}

TEST(CopyBeforeGemmTest, IsQuietAboutOtherCopies) {
  // The program's own copy, before a matmul.
  EXPECT_FALSE(find("copy-before-gemm", [](Program& p) {
    p.begin("aten::copy_").copy(20, 33'554'432).end();
    p.op("aten::mm", shapes(kSquare, kBf16), kNvjet, 180);
  }));
  // A few bytes inside addmm: the library's workspace.
  EXPECT_FALSE(find("copy-before-gemm", [](Program& p) {
    p.begin("aten::addmm", shapes(kAddmmDims, kAddmmTypes));
    p.copy(20, 4096).kernel(kNvjet, 180).end();
  }));
}

// --- fp32-matmul

// 2 * 4096^3 operations at 494.5 T/s are 277,935 ns; 2500 us were measured.
TEST(Fp32MatmulTest, SpeaksOfTheOrdinaryUnits) {
  const auto finding = find("fp32-matmul", [](Program& p) {
    p.op("aten::mm", shapes(kSquare, kFloat), "ampere_sgemm_128x64_nn", 2500);
  });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kCost);
  EXPECT_EQ(finding->at_stake_ns, 2'500'000 - 277'935);
  EXPECT_THAT(finding->try_next.at(0), HasSubstr("set_float32_matmul_precision"));
  EXPECT_NEAR(finding->arithmetic.at(0).values.at(1).real, 494.5 / 67, 0.001);
}

TEST(Fp32MatmulTest, NeedsNoShapes) {
  const auto finding =
      find("fp32-matmul", [](Program& p) { p.op("aten::mm", {}, "ampere_sgemm_128x64_nn", 2500); });
  ASSERT_TRUE(finding);
  EXPECT_NEAR(static_cast<double>(finding->at_stake_ns), 2'500'000 * (1 - 67 / 494.5), 2);
}

TEST(Fp32MatmulTest, IsQuietOnTensorCoresAndVectors) {
  EXPECT_FALSE(find("fp32-matmul", [](Program& p) {
    p.op("aten::mm", shapes(kSquare, kFloat),
         "cutlass_80_tensorop_s1688gemm_128x128_32x3_nn_align4", 400);
  }));
  // One row: limited by memory on any unit.
  EXPECT_FALSE(find("fp32-matmul", [](Program& p) {
    p.op("aten::mm", shapes("[[1, 4096], [4096, 4096]]", kFloat), "ampere_sgemm_32x32_nn", 2500);
  }));
  EXPECT_FALSE(find("fp32-matmul", [](Program& p) {
    p.op("aten::mm", shapes(kSquare, R"(["double", "double"])"), "ampere_dgemm_128x64_nn", 2500);
  }));
}

TEST(Fp32MatmulTest, AsksForTheDevice) {
  const auto body = [](Program& p) {
    p.op("aten::mm", shapes(kSquare, kFloat), "ampere_sgemm_128x64_nn", 2500);
  };
  EXPECT_EQ(state_of("fp32-matmul", body, ""), RuleRun::State::kNotChecked);
  // A GPU from before tensor cores.
  EXPECT_EQ(state_of("fp32-matmul", body,
                     R"([{"id": 0, "name": "Tesla P100", "computeMajor": 6, "computeMinor": 0}])"),
            RuleRun::State::kQuiet);
}

// --- half-off-tensor-cores

// 2 * 1024^3 operations at 989.5 T/s are 2,170 ns.
TEST(HalfOffTensorCoresTest, SpeaksOfBf16OnOrdinaryUnits) {
  const auto finding = find("half-off-tensor-cores", [](Program& p) {
    p.op("aten::mm", shapes("[[1024, 1024], [1024, 1024]]", kBf16),
         "void gemmSN_NN_kernel<__nv_bfloat16, 128, 2, 4, 8, 4, 4, true>(int)", 100);
  });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 100'000 - 2'170);
  EXPECT_EQ(finding->arithmetic.at(0).values.at(0).integer, 0);
}

TEST(HalfOffTensorCoresTest, IsQuietOnTensorCoresAndUnknownKernels) {
  for (const char* kernel : {kNvjet, "my_own_gemm"})
    EXPECT_FALSE(find("half-off-tensor-cores", [&](Program& p) {
      p.op("aten::mm", shapes("[[1024, 1024], [1024, 1024]]", kBf16), kernel, 100);
    })) << kernel;
}

// --- unaligned-dims

void draw_vocabulary(Program& p, std::int64_t odd_us) {
  p.op("aten::mm", shapes("[[4096, 4096], [4096, 50257]]", kBf16),
       "cutlass_75_wmma_tensorop_bf16_s161616gemm_bf16_16x16_128x2_tn_align1", odd_us);
  p.op("aten::mm", shapes("[[4096, 4096], [4096, 50304]]", kBf16), kNvjet, 2200);
}

// 50257 columns: 1704.2 us at the peak, 5000 measured: 34.1 %. 50304: 1705.8 of 2200: 77.5 %.
// At the neighbour's rate the odd one would take 2198 us.
TEST(UnalignedDimsTest, ComparesAnOddVocabularyWithItsNeighbour) {
  const auto finding = find("unaligned-dims", [](Program& p) { draw_vocabulary(p, 5000); });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values.at(2).integer, 50257);
  EXPECT_NEAR(static_cast<double>(finding->at_stake_ns), 2'802'000, 1000);
}

TEST(UnalignedDimsTest, IsQuietWhenTheOddSizeIsAsFast) {
  EXPECT_FALSE(find("unaligned-dims", [](Program& p) { draw_vocabulary(p, 2400); }));
  // An odd number of rows moves no row's beginning.
  EXPECT_FALSE(find("unaligned-dims", [](Program& p) {
    p.op("aten::mm", shapes("[[4095, 4096], [4096, 4096]]", kBf16), kNvjet, 900);
  }));
}

TEST(UnalignedDimsTest, AsksForShapesAndPeaks) {
  EXPECT_EQ(state_of("unaligned-dims", [](Program& p) { p.op("aten::mm", {}, kNvjet, 900); }),
            RuleRun::State::kNotChecked);
  EXPECT_EQ(state_of(
                "unaligned-dims", [](Program& p) { draw_vocabulary(p, 5000); }, ""),
            RuleRun::State::kNotChecked);
}

// --- slow-gemm

// 138,897 ns at the peak.
TEST(SlowGemmTest, SpeaksBelowFortyPercent) {
  const auto finding =
      find("slow-gemm", [](Program& p) { p.op("aten::mm", shapes(kSquare, kBf16), kNvjet, 500); });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 500'000 - 138'897);
  EXPECT_EQ(finding->arithmetic.at(0).values.at(0).integer, 275);  // 137.4 G / 0.5 ms
}

TEST(SlowGemmTest, IsQuietAboveItAndWhereMemoryIsTheLimit) {
  EXPECT_FALSE(
      find("slow-gemm", [](Program& p) { p.op("aten::mm", shapes(kSquare, kBf16), kNvjet, 300); }));
  // Eight rows: 1.07 G operations, but 134 MB of weights: 28 us by memory, 1 us by arithmetic.
  EXPECT_FALSE(find("slow-gemm", [](Program& p) {
    p.op("aten::mm", shapes("[[8, 8192], [8192, 8192]]", kBf16), kNvjet, 200);
  }));
}

// --- slow-attention

// 64 heads of 2048 queries by 2048 keys of 64 numbers: 2 * 64 * 2048^2 * 128 = 68.7 G operations,
// 69,449 ns at the peak; 4 * 16.8 MB are 13,981 ns of memory.
void draw_fused(Program& p, std::int64_t us, const char* causal = "False") {
  Fields inputs = shapes("[[4, 16, 2048, 64], [4, 16, 2048, 64], [4, 16, 2048, 64], [], [], []]",
                         R"(["c10::BFloat16", "c10::BFloat16", "c10::BFloat16", "", "", ""])");
  inputs.concrete_inputs = R"(["", "", "", "0.", ")" + std::string(causal) + R"(", "False"])";
  p.op("aten::_scaled_dot_product_flash_attention", inputs, "flash_fwd_kernel", us);
}

TEST(SlowAttentionTest, SpeaksBelowFortyPercent) {
  const auto finding = find("slow-attention", [](Program& p) { draw_fused(p, 250); });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 250'000 - 69'449);
  EXPECT_EQ(finding->arithmetic.at(0).values.at(0).integer, 275);
  EXPECT_EQ(finding->arithmetic.at(0).values.at(1).text, "a forward pass");
}

TEST(SlowAttentionTest, IsQuietAboveItAndCountsCausalWorkByHalf) {
  EXPECT_FALSE(find("slow-attention", [](Program& p) { draw_fused(p, 160); }));
  // Half of the operations in 160 us: 21.7 %.
  EXPECT_TRUE(find("slow-attention", [](Program& p) { draw_fused(p, 160, "True"); }));
}

// --- same-flops

void draw_pair(Program& p, std::int64_t slow_us) {
  p.op("aten::mm", shapes(kSquare, kBf16, "[[4096, 1], [4096, 1]]"), "nvjet_sm90_tst_64x64_NNN",
       slow_us);
  p.op("aten::mm", shapes(kSquare, kBf16, "[[4096, 1], [1, 4096]]"), kNvjet, 150);
}

TEST(SameFlopsTest, SpeaksOfTheSlowTwin) {
  const auto finding = find("same-flops", [](Program& p) { draw_pair(p, 200); });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values.at(1).integer, 137);
  EXPECT_EQ(finding->verdict.values.at(2).integer, 200'000);
  EXPECT_EQ(finding->verdict.values.at(4).integer, 150'000);
  EXPECT_EQ(finding->at_stake_ns, 50'000);
}

TEST(SameFlopsTest, IsQuietAboutSmallDifferences) {
  EXPECT_FALSE(find("same-flops", [](Program& p) { draw_pair(p, 190); }));
}

// --- wave-tail

constexpr char kAmpereGemm[] = "ampere_bf16_s16816gemm_bf16_256x128_ldg8_f2f_stages_64x3_nn";

// 1024 threads of 64 registers: one block on each of 132. 198 blocks: 1.5 waves of two.
TEST(WaveTailTest, SpeaksOfTheHalfEmptyWave) {
  const auto finding = find(
      "wave-tail", [](Program& p) { p.op("aten::mm", {}, kAmpereGemm, 100, grid(198, 1024, 64)); });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 25'000);
  EXPECT_EQ(finding->arithmetic.at(0).values.at(0).integer, 198);
  EXPECT_EQ(finding->arithmetic.at(0).values.at(2).integer, 132);
}

// A persistent kernel: 132 blocks, [2304 x 2048] in tiles of 256 x 128: 144 tiles, 1.09 waves.
TEST(WaveTailTest, CountsTheTilesOfPersistentKernels) {
  const auto finding = find("wave-tail", [](Program& p) {
    Fields launch = grid(132, 384, 168);
    launch.shared_bytes = 213'000;
    p.op("aten::mm", shapes("[[2304, 4096], [4096, 2048]]", kBf16), kNvjet, 100, launch);
  });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->arithmetic.at(0).values.at(0).integer, 144);
  EXPECT_EQ(finding->arithmetic.at(0).values.at(1).text, "tiles");
  EXPECT_NEAR(static_cast<double>(finding->at_stake_ns), 100'000 * (1 - 144.0 / 264), 1);
}

TEST(WaveTailTest, IsQuietOnFullAndOnManyWaves) {
  for (const std::int64_t blocks : {132, 260, 594, 100})
    EXPECT_FALSE(find("wave-tail", [&](Program& p) {
      p.op("aten::mm", {}, kAmpereGemm, 100, grid(blocks, 1024, 64));
    })) << blocks;
  // Element-wise kernels flow.
  EXPECT_FALSE(find("wave-tail", [&](Program& p) {
    p.op("aten::add", {}, "void at::native::vectorized_elementwise_kernel<4>(int)", 100,
         grid(198, 1024, 64));
  }));
}

// --- few-blocks

// 33 of 132 multiprocessors: a quarter is used.
TEST(FewBlocksTest, SpeaksOfEmptyMultiprocessors) {
  const auto finding = find("few-blocks", [](Program& p) {
    p.op("aten::native_layer_norm", {}, "layer_norm_kernel", 100, grid(33));
  });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 75'000);
  EXPECT_EQ(finding->evidence.at(0).text.values.at(3).integer, 33);
}

TEST(FewBlocksTest, IsQuietOnNearlyFullGpusAndShortKernels) {
  EXPECT_FALSE(find("few-blocks", [](Program& p) { p.op("aten::sum", {}, "k", 100, grid(126)); }));
  EXPECT_FALSE(find("few-blocks", [](Program& p) {
    for (int i = 0; i < 20; ++i) p.op("aten::sum", {}, "k", 9, grid(33));
  }));
}

TEST(FewBlocksTest, AsksForGrids) {
  const Fields rocm{.grid = "[33, 1, 1]", .block = "[256, 1, 1]"};
  EXPECT_EQ(state_of("few-blocks", [&](Program& p) { p.op("aten::sum", {}, "k", 100, rocm); }),
            RuleRun::State::kNotChecked);
  EXPECT_EQ(
      state_of("wave-tail", [&](Program& p) { p.op("aten::mm", {}, kAmpereGemm, 100, rocm); }),
      RuleRun::State::kNotChecked);
  EXPECT_EQ(state_of("low-occupancy",
                     [&](Program& p) {
                       p.op("aten::add", shapes(kSquare, kFloat), "add_kernel", 200, rocm);
                     }),
            RuleRun::State::kNotChecked);
}

// Another stream uses the rest of the GPU meanwhile.
TEST(FewBlocksTest, IsQuietWhenOtherWorkRunsBeside) {
  EXPECT_FALSE(find("few-blocks", [](Program& p) {
    Fields other = grid(1320);
    other.stream = 9;
    p.op("aten::mm", {}, kNvjet, 100, other);
    p.op("aten::sum", {}, "k", 100, grid(33));
  }));
}

// In a host-bound step it is told, but not as a cost.
TEST(FewBlocksTest, CostsNothingWhereTheGpuWaits) {
  const auto finding =
      find("few-blocks", [](Program& p) { p.op("aten::sum", {}, "k", 100, grid(33)).pass(200); });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kWhere);
  EXPECT_THAT(finding->arithmetic.back().pattern, HasSubstr("waits for the CPU"));
}

// --- low-occupancy

// 255 registers: 8192 a warp, two warps in each quarter: 8 of 64. Memory would need 41,943 ns.
TEST(LowOccupancyTest, SpeaksOfMemoryBoundKernelsWithFewWarps) {
  const auto finding = find("low-occupancy", [](Program& p) {
    p.op("aten::add", shapes(kSquare, kFloat), "add_kernel", 200, grid(1000, 128, 255));
  });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 200'000 - 41'943);
  EXPECT_EQ(finding->verdict.values.at(2).text, "registers");
}

TEST(LowOccupancyTest, IsQuietWhenFastOrWhenAMatmul) {
  EXPECT_FALSE(find("low-occupancy", [](Program& p) {
    p.op("aten::add", shapes(kSquare, kFloat), "add_kernel", 60, grid(1000, 128, 255));
  }));
  EXPECT_FALSE(find("low-occupancy", [](Program& p) {
    p.op("aten::mm", shapes("[[8, 8192], [8192, 8192]]", kBf16), kNvjet, 200, grid(1000, 128, 255));
  }));
  // Half of the warps, by registers.
  EXPECT_FALSE(find("low-occupancy", [](Program& p) {
    p.op("aten::add", shapes(kSquare, kFloat), "add_kernel", 200, grid(10'000, 128, 64));
  }));
}

// --- memory-roof, no-roof

// 3 * 4096^2 * 4 bytes in 50 us: 41.9 us at the bandwidth, 83.9 %.
TEST(MemoryRoofTest, SpeaksOfTheBandwidth) {
  const auto finding = find("memory-roof", [](Program& p) {
    p.op("aten::add", shapes(kSquare, kFloat), "add_kernel", 50);
  });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kWhere);
  EXPECT_DOUBLE_EQ(finding->verdict.values.at(0).real, 1.0);
  EXPECT_NEAR(finding->verdict.values.at(1).real, 0.839, 0.001);
  EXPECT_EQ(finding->at_stake_ns, 50'000);
}

TEST(MemoryRoofTest, IsQuietAboutMatmulsAndSlowPasses) {
  EXPECT_FALSE(find("memory-roof", [](Program& p) {
    p.op("aten::add", shapes(kSquare, kFloat), "add_kernel", 50);
    p.op("aten::mm", shapes(kSquare, kBf16), kNvjet, 169);
  }));
  EXPECT_FALSE(find("memory-roof", [](Program& p) {
    p.op("aten::add", shapes(kSquare, kFloat), "add_kernel", 80);
  }));
  EXPECT_EQ(
      state_of(
          "memory-roof",
          [](Program& p) { p.op("aten::add", shapes(kSquare, kFloat), "add_kernel", 50); }, ""),
      RuleRun::State::kNotChecked);
}

// 200 us of a pass that needs 41,943 ns: 21 %.
TEST(NoRoofTest, SpeaksOfABusyGpuFarFromItsRoof) {
  const auto finding = find("no-roof", [](Program& p) {
    for (int i = 0; i < 4; ++i) p.op("aten::add", shapes(kSquare, kFloat), "add_kernel", 200);
  });
  ASSERT_TRUE(finding);
  EXPECT_NEAR(finding->verdict.values.at(1).real, 0.2097, 0.0001);
  EXPECT_EQ(finding->at_stake_ns, 4 * (200'000 - 41'943));
}

TEST(NoRoofTest, IsQuietNearARoofAndAboutUnknownWork) {
  EXPECT_FALSE(find("no-roof", [](Program& p) {
    for (int i = 0; i < 4; ++i) p.op("aten::add", shapes(kSquare, kFloat), "add_kernel", 100);
  }));
  EXPECT_FALSE(find("no-roof", [](Program& p) {
    p.op("aten::add", shapes(kSquare, kFloat), "add_kernel", 200);
    p.op("my::op", shapes(kSquare, kFloat), "mine", 200);
  }));
}

// Most matmul time is in compiled code, whose shapes nobody recorded.
TEST(SlowGemmTest, IsNotCheckedWhereMostMatmulsHaveNoShapes) {
  const auto body = [](Program& p) {
    p.op("aten::add", shapes(kSquare, kFloat), "add_kernel", 100);
    p.op("CompiledFunction", {}, kNvjet, 500);
    p.op("aten::mm", shapes(kSquare, kBf16), kNvjet, 169);
  };
  for (const char* rule : {"slow-gemm", "same-flops", "unaligned-dims", "no-roof", "memory-roof"})
    EXPECT_EQ(state_of(rule, body), RuleRun::State::kNotChecked) << rule;
}

// --- layout-copies

void draw_contiguous(Program& p, std::string_view types, std::string_view strides) {
  p.op("aten::mm", shapes(kSquare, kBf16), kNvjet, 180);
  p.begin("aten::contiguous").begin("aten::clone");
  p.op("aten::copy_", shapes("[[1024, 512], [1024, 512], []]", types, strides), "copy_kernel", 20);
  p.end().end();
}
constexpr char kSameTypes[] = R"(["float", "float", "Scalar"])";
constexpr char kTransposed[] = "[[512, 1], [1, 1024], []]";

TEST(LayoutCopiesTest, NamesWhatAskedForTheCopy) {
  const auto finding =
      find("layout-copies", [](Program& p) { draw_contiguous(p, kSameTypes, kTransposed); });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 20'000);
  EXPECT_EQ(finding->evidence.at(0).text.values.at(0).text, "aten::contiguous");
}

TEST(LayoutCopiesTest, IsQuietAboutOtherCopies) {
  // A copy of the same layout, a conversion, an expansion.
  EXPECT_FALSE(find("layout-copies", [](Program& p) {
    draw_contiguous(p, kSameTypes, "[[512, 1], [512, 1], []]");
  }));
  EXPECT_FALSE(find("layout-copies", [](Program& p) {
    draw_contiguous(p, R"(["float", "c10::BFloat16", "Scalar"])", kTransposed);
  }));
  EXPECT_FALSE(find("layout-copies",
                    [](Program& p) { draw_contiguous(p, kSameTypes, "[[512, 1], [0, 1], []]"); }));
  EXPECT_EQ(state_of("layout-copies", [](Program& p) { draw_contiguous(p, kSameTypes, ""); }),
            RuleRun::State::kNotChecked);
}

// --- conv-layout

constexpr char kFprop[] =
    "sm90_xmma_fprop_implicit_gemm_f32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize256x64x32";

TEST(ConvLayoutTest, CountsTheShuffles) {
  const auto finding = find("conv-layout", [](Program& p) {
    p.begin("aten::cudnn_convolution");
    p.kernel("void cudnn::engines_precompiled::nchwToNhwcKernel<float, float>(int)", 10);
    p.kernel(kFprop, 100);
    p.kernel("void cudnn::engines_precompiled::nhwcToNchwKernel<float, float>(int)", 15).end();
  });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 25'000);
  EXPECT_EQ(finding->arithmetic.at(0).values.at(0).integer, 3);
  EXPECT_EQ(finding->arithmetic.at(0).values.at(1).integer, 3);
  EXPECT_EQ(finding->arithmetic.at(0).values.at(2).integer, 3);
}

TEST(ConvLayoutTest, IsQuietWithoutShuffles) {
  EXPECT_FALSE(
      find("conv-layout", [](Program& p) { p.op("aten::cudnn_convolution", {}, kFprop, 100); }));
  EXPECT_FALSE(find("conv-layout", [](Program& p) {
    p.begin("aten::cudnn_convolution").kernel(kFprop, 1000);
    p.kernel("void cudnn::engines_precompiled::nchwToNhwcKernel<float, float>(int)", 10).end();
  }));
}

// --- conv-bias

void draw_conv(Program& p, std::string_view bias, std::string_view between) {
  p.begin("aten::conv2d",
          shapes("[[8, 3, 32, 32], [64, 3, 3, 3], " + std::string(bias) + ", [], [], [], []]",
                 R"(["float", "float", "float", "", "", "", ""])"));
  p.begin("aten::_convolution").op("aten::cudnn_convolution", {}, kFprop, 100);
  p.op("aten::add_", {}, "add_kernel", 20).end().end();
  if (!between.empty()) p.op(between, shapes("[[8, 64, 32, 32]]", R"(["float"])"), "k", 10);
  p.op("aten::batch_norm", shapes("[[8, 64, 32, 32], [64]]", kFloat), "bn", 50);
}

TEST(ConvBiasTest, SpeaksOfABiasBeforeBatchNorm) {
  const auto finding = find("conv-bias", [](Program& p) { draw_conv(p, "[64]", ""); });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->at_stake_ns, 20'000);
  EXPECT_EQ(finding->arithmetic.at(0).values.at(0).integer, 3);
  EXPECT_EQ(finding->arithmetic.at(0).values.at(1).integer, 0);
}

TEST(ConvBiasTest, IsQuietWithoutBiasOrWithAnActivationBetween) {
  EXPECT_FALSE(find("conv-bias", [](Program& p) { draw_conv(p, "[]", ""); }));
  EXPECT_FALSE(find("conv-bias", [](Program& p) { draw_conv(p, "[64]", "aten::relu"); }));
}

// --- math-attention

void draw_attention(Program& p, std::string_view inner) {
  p.begin("aten::scaled_dot_product_attention").begin(inner);
  p.begin("aten::matmul").op("aten::bmm", {}, kNvjet, 40).end();
  p.op("aten::_softmax", {}, "softmax_kernel", 30);
  p.begin("aten::matmul").op("aten::bmm", {}, kNvjet, 40).end();
  p.end().end();
}

TEST(MathAttentionTest, SpeaksOfTheFallback) {
  const auto finding = find("math-attention", [](Program& p) {
    draw_attention(p, "aten::_scaled_dot_product_attention_math");
  });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values.at(0).integer, 3);
  EXPECT_EQ(finding->verdict.values.at(2).integer, 9);
  EXPECT_EQ(finding->at_stake_ns, 110'000);
}

TEST(MathAttentionTest, IsQuietAboutFusedKernelsAndSmallShares) {
  EXPECT_FALSE(find("math-attention", [](Program& p) {
    draw_attention(p, "aten::_scaled_dot_product_flash_attention");
  }));
  EXPECT_FALSE(find("math-attention", [](Program& p) {
    draw_attention(p, "aten::_scaled_dot_product_attention_math");
    for (int i = 0; i < 5; ++i) p.op("aten::mm", {}, kNvjet, 1000);
  }));
}

// 8 heads of 512 queries by 512 keys, of 64 numbers; a softmax of their scores; the values.
void draw_written_out(Program& p, std::string_view softmax_dims, std::string_view value_dims) {
  p.op("aten::bmm", shapes("[[8, 512, 64], [8, 64, 512]]", kBf16), kNvjet, 40);
  p.op("aten::div", shapes("[[8, 512, 512], []]", R"(["c10::BFloat16", "Scalar"])"), "div", 10);
  p.op("aten::_softmax", shapes(softmax_dims, R"(["c10::BFloat16"])"), "softmax_kernel", 30);
  p.op("aten::bmm", shapes(value_dims, kBf16), kNvjet, 40);
}

TEST(MathAttentionTest, SpeaksOfAttentionThatIsWrittenOut) {
  const auto finding = find("math-attention", [](Program& p) {
    draw_written_out(p, "[[8, 512, 512]]", "[[8, 512, 512], [8, 512, 64]]");
    p.op("aten::mm", shapes(kSquare, kBf16), kNvjet, 169);
  });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values.at(0).integer, 3);
  EXPECT_EQ(finding->verdict.values.at(2).integer, 12);
  EXPECT_EQ(finding->at_stake_ns, 120'000);
  EXPECT_THAT(finding->try_next.at(0), HasSubstr("scaled_dot_product_attention"));
}

TEST(MathAttentionTest, IsQuietAboutOtherSoftmaxes) {
  // Another tensor's softmax; a second matmul that does not take it.
  EXPECT_FALSE(find("math-attention", [](Program& p) {
    draw_written_out(p, "[[8, 512]]", "[[8, 512, 512], [8, 512, 64]]");
  }));
  EXPECT_FALSE(find("math-attention", [](Program& p) {
    draw_written_out(p, "[[8, 512, 512]]", "[[8, 512, 64], [8, 64, 512]]");
  }));
}

// --- split-k

TEST(SplitKTest, ExplainsTheReduction) {
  const auto finding = find("split-k", [](Program& p) {
    p.begin("aten::mm", shapes("[[64, 8192], [8192, 128]]", kBf16));
    p.kernel("nvjet_sm90_tst_64x8_64x16_4x1_v_bz_splitK_TNT", 40);
    p.kernel("void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16>(int)", 4).end();
  });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kNormal);
  EXPECT_EQ(finding->verdict.values.at(0).integer, 3);
  EXPECT_EQ(finding->verdict.values.at(1).integer, 4000);
  EXPECT_EQ(finding->arithmetic.at(1).values.at(2).integer, 8192);
  EXPECT_EQ(finding->arithmetic.at(2).values.at(0).integer, 3);
}

TEST(SplitKTest, IsQuietWithoutOne) {
  EXPECT_FALSE(find("split-k", [](Program& p) { p.op("aten::mm", {}, kNvjet, 40); }));
}

// --- matmul-chain

TEST(MatmulChainTest, CountsTheViewsThatLaunchNothing) {
  const auto finding = find("matmul-chain", [](Program& p) {
    p.begin("aten::linear").begin("aten::t").begin("aten::transpose").end().end();
    p.op("aten::addmm", {}, kNvjet, 100).end();
  });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kNormal);
  EXPECT_EQ(finding->verdict.values.at(0).integer, 6);
  EXPECT_EQ(finding->verdict.values.at(1).integer, 3);
  // t: 4 us, 2 of them in transpose.
  EXPECT_EQ(finding->verdict.values.at(2).integer, 4000);
  EXPECT_EQ(finding->evidence.at(0).text.values.at(0).text, "aten::linear > aten::addmm");
}

TEST(MatmulChainTest, IsQuietWhereViewsAreNoPartOfTheTime) {
  EXPECT_FALSE(find("matmul-chain", [](Program& p) {
    p.begin("aten::linear").begin("aten::t").end();
    p.op("aten::addmm", {}, kNvjet, 100).end().pass(500);
  }));
  // A view that launches is none.
  EXPECT_FALSE(find("matmul-chain", [](Program& p) {
    p.begin("aten::matmul").begin("aten::reshape").kernel("copy", 5).end();
    p.op("aten::mm", {}, kNvjet, 100).end();
  }));
}

// --- occupancy-query

TEST(OccupancyQueryTest, ExplainsTheQueryBeforeALaunch) {
  const auto finding = find("occupancy-query", [](Program& p) {
    p.begin("aten::mm").call("cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags");
    p.kernel(kNvjet, 100).end().pass(50);
  });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, FindingKind::kNormal);
  EXPECT_EQ(finding->verdict.values.at(0).integer, 3);
  EXPECT_EQ(finding->verdict.values.at(1).integer, 3);
  EXPECT_EQ(finding->verdict.values.at(2).integer, 1000);
  EXPECT_THAT(finding->try_next.at(0), HasSubstr("leave them"));
}

TEST(OccupancyQueryTest, CountsEveryQuestionHowMuchFits) {
  const auto finding = find("occupancy-query", [](Program& p) {
    p.begin("aten::mm").call("cudaOccupancyAvailableDynamicSMemPerBlock");
    p.call("hipModuleOccupancyMaxPotentialBlockSize").kernel(kNvjet, 100).end().pass(50);
  });
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->verdict.values.at(0).integer, 6);
  EXPECT_EQ(finding->verdict.values.at(1).integer, 6);
}

TEST(OccupancyQueryTest, SaysWhenTheQueriesThemselvesCost) {
  const auto finding = find("occupancy-query", [](Program& p) {
    p.begin("aten::mm").call("cudaOccupancyMaxActiveBlocksPerMultiprocessor");
    p.kernel(kNvjet, 100).end();
  });
  ASSERT_TRUE(finding);
  EXPECT_THAT(finding->try_next.at(0), HasSubstr("more than 5 %"));
}

TEST(OccupancyQueryTest, IsQuietAboutQueriesThatLaunchNothing) {
  EXPECT_FALSE(find("occupancy-query", [](Program& p) {
    p.begin("my::probe").call("cudaOccupancyMaxActiveBlocksPerMultiprocessor").end();
    p.op("aten::mm", {}, kNvjet, 100);
  }));
}

// --- all of them

constexpr const char* kRules[] = {"copy-before-gemm", "fp32-matmul",  "half-off-tensor-cores",
                                  "unaligned-dims",   "slow-gemm",    "slow-attention",
                                  "same-flops",       "wave-tail",    "few-blocks",
                                  "low-occupancy",    "memory-roof",  "no-roof",
                                  "layout-copies",    "conv-layout",  "conv-bias",
                                  "math-attention",   "matmul-chain", "split-k",
                                  "occupancy-query"};

TEST(KernelRulesTest, AreNotCheckedWithoutAGpu) {
  testing::Sketch sketch;
  sketch.op("aten::mm", 0, 1000);
  const Trace trace = sketch.trace();
  for (const char* rule : kRules)
    EXPECT_EQ(explain(trace, rule).runs.at(0).state, RuleRun::State::kNotChecked) << rule;
}

// Arguments of any text, on a GPU that describes itself badly.
TEST(KernelRulesTest, SurviveHostileArguments) {
  for (const char* text : {"", "[", "[[[[", "[[-1, 0], [0, 0]]", "[[1e400], [\"x\"]]", "{}", "null",
                           "[[9223372036854775807, 9223372036854775807], [2, 2]]"}) {
    Program program(R"([{"id": 0, "name": "NVIDIA H200", "computeMajor": 9, "computeMinor": 0,
                         "numSms": 9223372036854775807, "warpSize": 0}])");
    const Trace trace = program.steps([&](Program& p) {
      for (const char* op : {"aten::mm", "aten::addmm", "aten::copy_", "aten::conv2d",
                             "aten::batch_norm", "aten::convolution_backward"}) {
        Fields inputs = shapes(text, text, text);
        inputs.concrete_inputs = text;
        Fields launch{.grid = text, .block = text, .registers = -7, .shared_bytes = -1};
        p.op(op, inputs, "ampere_sgemm_128x64_nn", 100, launch);
      }
    });
    for (const char* rule : kRules) (void)explain(trace, rule);
  }
}

}  // namespace
}  // namespace lanescope::explain
