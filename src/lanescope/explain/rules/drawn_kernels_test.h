// Draws single kernels for the rules about them, on an H200: 132 multiprocessors, bf16 989.5 T/s,
// TF32 494.5 T/s, float32 67 T/s, 4.8 TB/s.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "lanescope/explain/rule_helpers_test.h"

namespace lanescope::explain {

inline constexpr char kH200[] =
    R"([{"id": 0, "name": "NVIDIA H200", "computeMajor": 9, "computeMinor": 0, "numSms": 132,
        "maxThreadsPerMultiprocessor": 2048, "regsPerMultiprocessor": 65536, "warpSize": 32,
        "sharedMemPerMultiprocessor": 233472}])";
inline constexpr char kBf16[] = R"(["c10::BFloat16", "c10::BFloat16"])";
inline constexpr char kFloat[] = R"(["float", "float"])";
inline constexpr char kSquare[] = "[[4096, 4096], [4096, 4096]]";
inline constexpr char kNvjet[] = "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT";
inline constexpr char kAmpereGemm[] = "ampere_bf16_s16816gemm_bf16_256x128_ldg8_f2f_stages_64x3_nn";
inline constexpr char kFprop[] =
    "sm90_xmma_fprop_implicit_gemm_f32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize256x64x32";

inline testing::Fields shapes(std::string_view dims, std::string_view types,
                              std::string_view strides = {}) {
  return {.input_dims = std::string(dims),
          .input_types = std::string(types),
          .input_strides = std::string(strides)};
}

// Four steps of `body` on these devices; the first does not count. The CPU is ahead of the GPU.
inline Trace draw_steps(const std::function<void(testing::ProgramSketch&)>& body,
                        std::string_view devices) {
  testing::ProgramSketch program;
  if (!devices.empty()) program.sketch().metadata("deviceProperties", devices);
  return program.steps(4, body).trace();
}

// What the rule finds in such steps.
inline std::optional<Finding> find_in_steps(
    const std::string& rule, const std::function<void(testing::ProgramSketch&)>& body,
    std::string_view devices = kH200) {
  return find_by_rule(draw_steps(body, devices), rule);
}

inline RuleRun::State state_in_steps(const std::string& rule,
                                     const std::function<void(testing::ProgramSketch&)>& body,
                                     std::string_view devices = kH200) {
  return state_of_rule(draw_steps(body, devices), rule);
}

}  // namespace lanescope::explain
