// float32 matmuls and convolutions on the ordinary units of a GPU that has faster ones.
#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <vector>

#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

struct Fp32Kernels {
  Savings kernels;
  SliceId example = kNone<SliceId>;  // the longest of the operator with most of their time
  double better = 0;                 // peak of the tensor cores; 0: not known
  double fp32 = 0;                   // peak of the float32 units; 0: not known
  bool has_tf32 = false;
  bool eightfold = false;  // by the compute capability alone
  std::vector<SliceId> all;
};

bool is_solver(std::string_view op) {
  for (const std::string_view prefix : {"aten::linalg_", "aten::_linalg_", "aten::cholesky",
                                        "aten::lu_", "aten::triangular_solve", "aten::ormqr"})
    if (op.starts_with(prefix)) return true;
  return false;
}

// Tensor cores compute tiles of at least eight channels.
bool has_few_channels(const Facts& facts, const KernelCall& kernel) {
  if (!kernel.is_convolution()) return false;
  const SliceId op = ancestor_named(facts, facts.links.op_of[raw(kernel.slice)], "aten::conv");
  const auto weight =
      op == kNone<SliceId> ? std::nullopt : operator_inputs(*facts.trace, op).tensor(1);
  return weight && weight->rank() >= 3 && weight->dims[0] < 8;
}

// Kernels of a solver (LU, Cholesky, triangular systems) are chosen by cuSOLVER, which neither autocast nor the precision of
// matmuls reaches. A product that an operator of torch's runs inside, such as aten::mm of linalg_matrix_power, is reached.
bool is_in_solver(const Facts& facts, const KernelCall& kernel) {
  const SliceId op =
      ancestor_where(facts, facts.links.op_of[raw(kernel.slice)], [](std::string_view name) {
        return is_solver(name) || name == "aten::mm" || name == "aten::bmm" ||
               name == "aten::addmm" || name == "aten::baddbmm";
      });
  return op != kNone<SliceId> && is_solver(facts.trace->name(op));
}

// The operator whose kernels take most time; one long kernel, such as the first convolution's, may be a small part of all.
// Users write the forward pass, so operators of the backward pass count only where there are no others.
class MostByOperator {
 public:
  explicit MostByOperator(const Facts& facts) : facts_(facts), trace_(*facts.trace) {}
  void add(const KernelCall& kernel) {
    const bool is_backward =
        ancestor_named(facts_, kernel.op, "autograd::engine::evaluate_function") != kNone<SliceId>;
    Sum& sum =
        (is_backward
             ? of_backward_
             : sums_)[kernel.op == kNone<SliceId> ? raw(kNone<StringId>)
                                                  : raw(trace_.slices().name[raw(kernel.op)])];
    sum.time_ns += kernel.dur_ns();
    if (sum.longest == kNone<SliceId> || kernel.dur_ns() > trace_.dur_ns(sum.longest))
      sum.longest = kernel.slice;
  }
  SliceId longest_of_most() const {
    const std::map<std::uint32_t, Sum>& sums = sums_.empty() ? of_backward_ : sums_;
    const auto most = std::max_element(sums.begin(), sums.end(), [](const auto& a, const auto& b) {
      return a.second.time_ns < b.second.time_ns;
    });
    return most == sums.end() ? kNone<SliceId> : most->second.longest;
  }

 private:
  struct Sum {
    std::int64_t time_ns = 0;
    SliceId longest = kNone<SliceId>;
  };
  const Facts& facts_;
  const Trace& trace_;
  std::map<std::uint32_t, Sum> sums_, of_backward_;  // by the operator's name
};

Measurement<Fp32Kernels> measure_fp32_matmul(const Facts& facts) {
  const KernelFacts& kernels = kernel_facts(facts);
  const GpuSpec* spec = kernels.roofline.spec;
  const auto major = kernels.roofline.device.compute_major;
  const bool is_amd = kernels.roofline.device.name.find("AMD") != std::string::npos;
  if (is_amd || (major && *major < 7)) return Quiet{};
  const bool has_tf32 = major.value_or(0) >= 8;
  // Tensor cores without TF32 (V100, T4) need half precision.
  const double better = !spec ? 0 : (has_tf32 ? spec->peak.tf32 : spec->peak.fp16).value_or(0);
  const double fp32 = spec ? spec->peak.fp32.value_or(0) : 0;
  // For a GPU that is in no catalog, the compute capability gives the ratio: 64 float32 units a
  // multiprocessor, and tensor cores with 512 multiply-adds a clock.
  const auto minor = kernels.roofline.device.compute_minor.value_or(0);
  const bool eightfold =
      !spec && major &&
      ((*major == 7 && (minor == 0 || minor == 5)) || (*major == 8 && minor == 0));
  Savings savings;
  MostByOperator by_operator(facts);
  std::vector<SliceId> all;
  for (const KernelCall& kernel : kernels.kernels) {
    if (kernel.matrix_units != analysis::MatrixUnits::kNotUsed || kernel.input_type() != "f32" ||
        (!kernel.is_gemm() && !kernel.is_convolution()) || kernel.name->operation == "GEMV" ||
        has_few_channels(facts, kernel) || is_in_solver(facts, kernel))
      continue;
    const bool is_main = kernel.call && kernel.call->kernel == kernel.slice;
    double floor_ns = eightfold ? static_cast<double>(kernel.dur_ns()) / 8 : 0;
    if (is_main) {
      const auto& gemm = kernel.work->gemm;
      if (gemm && (gemm->m == 1 || gemm->n == 1)) continue;  // limited by memory, on any unit
      floor_ns = std::max(floor_ns, kernel.call->memory_floor_ns);
      if (better > 0) floor_ns = std::max(floor_ns, kernel.work->flops / better * 1e9);
    } else if (better > 0) {
      floor_ns = static_cast<double>(kernel.dur_ns()) * fp32 / better;
    }
    savings.add(kernel, kernel.dur_ns() - std::llround(std::min(floor_ns, 1e18)));
    by_operator.add(kernel);
    all.push_back(kernel.slice);
  }
  savings.finish();
  if (savings.calls() == 0 || wall_share(facts, savings.saved_ns()) < 0.03) return Quiet{};
  // It is known whether the GPU has tensor cores only if the trace describes the device.
  if (!major)
    return NotChecked{"what GPU it was (deviceProperties), to know whether it has tensor cores"};
  return Fp32Kernels{.kernels = std::move(savings),
                     .example = by_operator.longest_of_most(),
                     .better = better,
                     .fp32 = fp32,
                     .has_tf32 = has_tf32,
                     .eightfold = eightfold,
                     .all = std::move(all)};
}

Finding tell_fp32_matmul(const Facts& facts, const Fp32Kernels& found) {
  Finding finding;
  finding.verdict = say(facts,
                        "float32 matrix work does not use the tensor cores: {} [kernel|kernels], "
                        "{} of [a step's] {}.",
                        {count(found.kernels.calls()), ns(facts.per_step(found.kernels.time_ns())),
                         ns(facts.per_step(facts.wall.partition.wall_ns))});
  if (found.better > 0 && found.fp32 > 0)
    finding.arithmetic.push_back(
        say("the peak of {} is {} times that of its float32 units",
            {text(found.has_tf32 ? "TF32" : "float16"),
             factor(std::llround(found.better / 1e9), std::llround(found.fp32 / 1e9))}));
  else if (found.eightfold)
    finding.arithmetic.push_back(
        say("the GPU's rates are not known here; by its compute capability the tensor cores do 8 "
            "times as many {} operations",
            {text(found.has_tf32 ? "TF32" : "float16")}));
  else
    finding.arithmetic.push_back(
        say("the GPU's peak rates are not known: all of this time is counted as at stake"));
  rate_finding(facts, found.kernels, finding);
  finding.all_work = found.all;
  const SliceId op = facts.links.op_of[raw(found.example)];
  finding.evidence.push_back(op == kNone<SliceId>
                                 ? longest_of(facts, found.example)
                                 : Evidence{found.example, say("the longest one launched by {}",
                                                               {name(facts.trace->name(op))})});
  if (found.has_tf32)
    finding.try_next = {
        "call torch.set_float32_matmul_precision(\"high\") for matmuls, and set "
        "torch.backends.cudnn.allow_tf32 for convolutions (TF32 has 10 bits of mantissa)",
        "use torch.autocast with bfloat16"};
  else
    finding.try_next = {
        "use torch.autocast with float16 and gradient scaling (this GPU has no TF32)"};
  finding.explains.push_back({"slow-gemm", finding.at_stake_ns});
  finding.explains.push_back({"no-roof", finding.at_stake_ns});
  finding.brief = say("Matrix work runs in float32, without tensor cores");
  finding.action = found.has_tf32
                       ? say("Use torch.autocast(\"cuda\", torch.bfloat16), or "
                             "torch.set_float32_matmul_precision(\"high\")")
                       : say("Use torch.autocast(\"cuda\", torch.float16) with a gradient scaler");
  return finding;
}

}  // namespace

extern constinit const Rule fp32_matmul_rule = {
    .id = "fp32-matmul",
    .question = "do float32 matmuls leave the tensor cores unused?",
    .meant_by = "tf32 bf16 fp16 precision tensorcore autocast",
    .order = 490,
    .needs = {need::kGpuWork},
    .only_if = kernels_matter,
    .run = measure_and_tell<measure_fp32_matmul, tell_fp32_matmul>,
    .is_regression = true,
    .fix = Fix::kGpu,
    .keeps_kernels = true,
};

}  // namespace lanescope::explain::rules
