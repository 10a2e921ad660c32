// Half-precision matmuls and convolutions whose kernels do not use the tensor cores.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

// The channels of the convolution around a kernel. Nothing: no convolution, or no shapes.
struct Channels {
  std::int64_t in = 0, out = 0;
  bool has_one_row = false;  // along one dimension: channels_last is no other layout
  bool are_multiples() const { return in % kMultiple == 0 && out % kMultiple == 0; }
  static constexpr std::int64_t kMultiple = 8;
};

std::optional<Channels> channels_of(const Facts& facts, SliceId op) {
  if (op == kNone<SliceId> || facts.trace->name(op).find("conv") == std::string_view::npos)
    return std::nullopt;
  const analysis::TensorArguments inputs = operator_inputs(*facts.trace, op);
  const auto data = inputs.tensor(0), weight = inputs.tensor(1);
  if (!data || !weight || data->dims.size() < 3 || weight->dims.size() < 3) return std::nullopt;
  return Channels{
      .in = weight->dims[1],
      .out = weight->dims[0],
      .has_one_row = data->dims.size() == 3 || (data->dims.size() == 4 && data->dims[2] == 1)};
}

struct HalfKernels {
  Savings kernels;
  std::uint64_t unaligned = 0;
  std::uint64_t with_shape = 0;
  std::optional<Channels> channels;  // of the longest kernel
};

Measurement<HalfKernels> measure_half_off_tensor_cores(const Facts& facts) {
  const KernelFacts& kernels = kernel_facts(facts);
  const auto major = kernels.roofline.device.compute_major;
  if (major && *major < 7) return Quiet{};
  Savings savings;
  std::uint64_t unaligned = 0, with_shape = 0;
  std::unordered_map<std::uint32_t, Channels> channels;
  for (const KernelCall& kernel : kernels.kernels) {
    const std::string_view type = kernel.input_type();
    if (kernel.matrix_units != analysis::MatrixUnits::kNotUsed || (type != "f16" && type != "bf16"))
      continue;
    if ((!kernel.is_gemm() && !kernel.is_convolution()) || kernel.name->operation == "GEMV")
      continue;
    if (const auto found = channels_of(facts, kernel.op)) {
      // No other size and no other layout is to be had.
      if (found->are_multiples() && found->has_one_row) continue;
      channels.emplace(raw(kernel.slice), *found);
    }
    double floor_ns = 0;
    if (kernel.call && kernel.call->kernel == kernel.slice) {
      const auto& gemm = kernel.work->gemm;
      if (gemm && (gemm->m == 1 || gemm->n == 1)) continue;  // a vector: limited by memory
      floor_ns = kernel.call->floor_ns();
      if (gemm) {
        ++with_shape;
        unaligned += gemm->n % 8 != 0 || gemm->k % 8 != 0 ? 1 : 0;
      }
    }
    savings.add(kernel, kernel.dur_ns() - std::llround(std::min(floor_ns, 1e18)));
  }
  savings.finish();
  if (savings.calls() == 0 || wall_share(facts, savings.saved_ns()) < 0.02) return Quiet{};
  if (!major)
    return NotChecked{"what GPU it was (deviceProperties), to know whether it has tensor cores"};
  const auto of_longest = channels.find(raw(savings.longest()));
  return HalfKernels{
      .kernels = std::move(savings),
      .unaligned = unaligned,
      .with_shape = with_shape,
      .channels = of_longest == channels.end() ? std::nullopt : std::optional(of_longest->second)};
}

// A convolution of pictures whose channels do not lie next to each other. For these PyTorch takes cuDNN's depthwise kernels of 16 bits
// for few sizes only, and for channels_last always (ConvParams::use_cudnn_depthwise).
bool is_channels_first(const Facts& facts, SliceId kernel) {
  const SliceId op = facts.links.op_of[raw(kernel)];
  if (op == kNone<SliceId>) return false;
  const auto data = operator_inputs(*facts.trace, op).tensor(0);
  return data && data->rank() == 4 && data->strides && data->dims[1] > 1 && data->dims[2] > 1 &&
         (*data->strides)[1] > 1 && (*data->strides)[3] == 1;
}

void tell_channels(const Channels& channels, Finding& finding) {
  const bool of_input = channels.in % Channels::kMultiple != 0;
  finding.try_next = {
      "pad channels to a multiple of 8; a convolution whose stride is its kernel's size is also a "
      "Linear over patches, which joins channels and pixels to one larger size"};
  finding.action =
      say(of_input ? "{} input channels are no multiple of 8: pad them; or, if the stride is the "
                     "kernel's size, use a Linear over patches"
                   : "{} output channels are no multiple of 8: make more or fewer of them",
          {count(static_cast<std::uint64_t>(of_input ? channels.in : channels.out))});
}

Finding tell_half_off_tensor_cores(const Facts& facts, const HalfKernels& found) {
  Finding finding;
  finding.verdict =
      say(facts,
          "Half-precision matrix work does not use the tensor cores: {} [kernel|kernels], {} [per "
          "step].",
          {count(found.kernels.calls()), ns(facts.per_step(found.kernels.time_ns()))});
  if (found.with_shape > 0)
    finding.arithmetic.push_back(
        say(facts, "{} of {} [matmul has|matmuls have] a size that is not a multiple of 8",
            {count(found.unaligned), count(found.with_shape)}));
  rate_finding(facts, found.kernels, finding);
  finding.evidence.push_back(longest_of(facts, found.kernels.longest()));
  const std::string_view longest_name = facts.trace->name(found.kernels.longest());
  if (longest_name.find("depthwise") != longest_name.npos &&
      is_channels_first(facts, found.kernels.longest()))
    finding.try_next = {
        "use channels_last for the model and its input: cuDNN then takes its depthwise "
        "convolutions; or torch.compile, which generates a kernel"};
  else if (longest_name.find("depthwise") != longest_name.npos)
    finding.try_next = {
        "use cuDNN's kernel (torch.backends.cudnn.enabled) or a generated one (torch.compile): a "
        "depthwise convolution does few operations per byte"};
  else if (found.channels && !found.channels->are_multiples())
    tell_channels(*found.channels, finding);
  else if (found.channels || (found.with_shape > 0 && found.unaligned == 0))
    finding.try_next = {
        found.channels
            ? "use channels_last for convolutions: the channels are multiples of 8 already"
            : "make inputs contiguous, and their first element aligned to 16 bytes: the sizes are "
              "multiples of 8 already"};
  else
    finding.try_next = {"make sizes and strides multiples of 8 elements (16 bytes)",
                        "make inputs contiguous; use channels_last for convolutions"};
  finding.explains.push_back({"slow-gemm", finding.at_stake_ns});
  finding.explains.push_back({"no-roof", finding.at_stake_ns});
  finding.brief = say("Half-precision matrix work runs without tensor cores");
  return finding;
}

}  // namespace

extern constinit const Rule half_off_tensor_cores_rule = {
    .id = "half-off-tensor-cores",
    .question = "do half-precision matmuls run without tensor cores?",
    .meant_by = "tensorcore",
    .order = 500,
    .needs = {need::kGpuWork},
    .only_if = kernels_matter,
    .run = measure_and_tell<measure_half_off_tensor_cores, tell_half_off_tensor_cores>,
    .is_regression = true,
    .fix = Fix::kGpu,
    .keeps_kernels = true,
};

}  // namespace lanescope::explain::rules
