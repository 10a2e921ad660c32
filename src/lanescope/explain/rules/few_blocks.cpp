// Kernels with fewer blocks than the GPU has multiprocessors.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "lanescope/base/sort_rows.h"
#include "lanescope/base/wide.h"
#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/rules/batch_advice.h"
#include "lanescope/explain/rules/enclosing_events.h"
#include "lanescope/explain/rules/few_rows.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

struct BlockGroup {
  std::uint64_t calls = 0;
  std::int64_t total_ns = 0, blocks = 0;  // blocks of the longest
  SliceId longest = kNone<SliceId>;
};

struct FewBlocks {
  Savings calls;
  std::map<std::string_view, BlockGroup> by_name;
  // Time of kernels that the program brings itself; of those inside solvers; of all of them.
  std::int64_t own_ns = 0, solvers_ns = 0, all_ns = 0;
  std::int64_t layers_ns = 0;  // of products and attention
  std::int64_t scans_ns = 0;   // of scans with a thread for each column
  // Of kernels whose blocks are full: a larger batch does not make more of them. Its operators, with their time.
  std::int64_t full_ns = 0;
  std::map<std::string_view, std::int64_t> full_ops;
};

// Factorisations and solvers of one matrix work row by row: each needs those before it.
bool is_in_solver(const Facts& facts, SliceId op) {
  return ancestor_where(facts, op, [](std::string_view name) {
           return name.starts_with("aten::linalg_") || name.starts_with("aten::_linalg_") ||
                  name == "aten::cholesky_solve" || name == "aten::cholesky" ||
                  name == "aten::triangular_solve" || name == "aten::lu_solve";
         }) != kNone<SliceId>;
}

// True: the kernel is the program's own, not from a library or a compiler. Its name is unknown, or
// Triton's, and no operator of PyTorch is around its launch.
bool is_own(const Facts& facts, const KernelCall& kernel) {
  if (kernel.name->library != "Triton" && kernel.name->known()) return false;
  if (facts.trace->name(kernel.slice).starts_with("triton_")) return false;  // Inductor's
  for (SliceId op = kernel.op; op != kNone<SliceId>; op = facts.nesting.parent[raw(op)])
    if (facts.trace->name(op).starts_with("aten::")) return false;
  return true;
}

// torch adds up this loss in one block, however large the batch is, and the gradients of a norm's weights in blocks of
// features.
bool has_fixed_grid(std::string_view name) {
  return name.find("nll_loss_") != name.npos || name.find("GammaBeta") != name.npos;
}

// cumsum and its like along a dimension that is not the last: a thread goes along each column, so the columns decide how many
// blocks there are, and a longer column makes no more of them.
bool is_scan_of_columns(std::string_view name) {
  return name.find("tensor_kernel_scan_outer_dim") != name.npos;
}

// Reductions and norms: torch.compile splits them over blocks, and their layout decides how many there are.
bool is_reduction(std::string_view op) {
  constexpr std::string_view kParts[] = {"norm", "sum", "mean", "var", "std"};
  return op.find("cumsum") == op.npos && op.find("logcumsumexp") == op.npos &&
         std::any_of(std::begin(kParts), std::end(kParts),
                     [&](std::string_view part) { return op.find(part) != op.npos; });
}

// The reduction of PyTorch whose input has so many elements for each block that a larger batch gives blocks more work, and does
// not make more of them. kNone: there is none, or sizes are not recorded.
SliceId with_full_blocks(const Facts& facts, const KernelCall& kernel, std::int64_t blocks) {
  constexpr double kFullBlock = 1 << 16;
  constexpr std::size_t kMostInputs = 4;
  for (SliceId op = kernel.op; op != kNone<SliceId>; op = facts.nesting.parent[raw(op)]) {
    const std::string_view name = facts.trace->name(op);
    if (facts.trace->kind(op) != CategoryKind::kCpuOp || !name.starts_with("aten::") ||
        !is_reduction(name))
      continue;
    const analysis::TensorArguments inputs = operator_inputs(*facts.trace, op);
    for (std::size_t k = 0; k < kMostInputs; ++k)
      if (const auto tensor = inputs.tensor(k);
          tensor && tensor->elements() >= kFullBlock * static_cast<double>(blocks))
        return op;
  }
  return kNone<SliceId>;
}

Measurement<FewBlocks> measure_few_blocks(const Facts& facts) {
  const KernelFacts& kernels = kernel_facts(facts);
  Savings calls;
  std::map<std::string_view, BlockGroup> by_name;
  bool has_grids = false, has_long = false;
  std::int64_t own_ns = 0, solvers_ns = 0, all_ns = 0, full_ns = 0, scans_ns = 0, layers_ns = 0;
  std::map<std::string_view, std::int64_t> full_ops;
  for (const KernelCall& kernel : kernels.kernels) {
    if (kernel.dur_ns() < 10'000 || !kernel.is_alone ||
        has_fixed_grid(facts.trace->name(kernel.slice)))
      continue;
    const auto shape = kernels.shape(*facts.trace, kernel);
    has_long = true;
    has_grids |= shape.has_value();
    if (!shape || wide(shape->blocks) * 4 > wide(shape->sm_count) * 3) continue;
    const double used = static_cast<double>(shape->blocks) / static_cast<double>(shape->sm_count);
    calls.add(kernel, std::llround(static_cast<double>(kernel.dur_ns()) * (1 - used)));
    BlockGroup& group = by_name[facts.trace->name(kernel.slice)];
    all_ns += kernel.dur_ns();
    if (is_own(facts, kernel)) own_ns += kernel.dur_ns();
    if (kernel.is_gemm() || kernel.is_attention()) layers_ns += kernel.dur_ns();
    if (is_in_solver(facts, kernel.op)) solvers_ns += kernel.dur_ns();
    if (is_scan_of_columns(facts.trace->name(kernel.slice))) scans_ns += kernel.dur_ns();
    if (const SliceId op = with_full_blocks(facts, kernel, shape->blocks); op != kNone<SliceId>) {
      full_ns += kernel.dur_ns();
      full_ops[facts.trace->name(op)] += kernel.dur_ns();
    }
    ++group.calls;
    group.total_ns += kernel.dur_ns();
    if (group.longest == kNone<SliceId> || kernel.dur_ns() > facts.trace->dur_ns(group.longest)) {
      group.longest = kernel.slice;
      group.blocks = shape->blocks;
    }
  }
  if (has_long && !has_grids) return NotChecked{kNeedsGrids};
  calls.finish();
  if (calls.calls() == 0 || wall_share(facts, calls.saved_ns()) < 0.02) return Quiet{};
  return FewBlocks{.calls = std::move(calls),
                   .by_name = std::move(by_name),
                   .own_ns = own_ns,
                   .solvers_ns = solvers_ns,
                   .all_ns = all_ns,
                   .layers_ns = layers_ns,
                   .scans_ns = scans_ns,
                   .full_ns = full_ns,
                   .full_ops = std::move(full_ops)};
}

// The author of a kernel chooses its grid.
void tell_of_own_kernel(const Facts& facts, std::string_view label, const BlockGroup& group,
                        Finding& finding) {
  const auto sm_count = static_cast<std::uint64_t>(*kernel_facts(facts).roofline.device.sm_count);
  finding.try_next = {
      "launch more blocks: let each do less, and split the loop inside the kernel (over rows, over "
      "the sum) between blocks; a sum then needs atomics or a second pass",
      fmt::format("aim at {} blocks or more, at best several times as many", sm_count)};
  finding.brief =
      say(facts, "{} runs with {} [block|blocks] on {} multiprocessors",
          {kernel(label), count(static_cast<std::uint64_t>(group.blocks)), count(sm_count)});
  finding.action = say("Launch it with a larger grid: split its work over more blocks (programs)");
}

// Layers follow each other, so that their calls cannot be joined. What can grow is the number of sequences.
void tell_of_few_rows(Finding& finding) {
  finding.try_next = {
      "the matrix products work on a few rows and read all of their weights: more rows take hardly "
      "longer. Let a step work on more sequences, or read fewer bytes: weights of 8 bits",
      "run independent work on a second stream, or put independent calls into one (batched)"};
  finding.action =
      say("The products have few rows, and read all weights: more sequences per step cost little");
}

Finding tell_few_blocks(const Facts& facts, const FewBlocks& found) {
  const KernelFacts& kernels = kernel_facts(facts);
  Finding finding;
  finding.verdict = say(facts,
                        "Kernels have too few blocks to fill the GPU: {} [call|calls], {} [per "
                        "step], with at most three quarters of its {} multiprocessors busy.",
                        {count(found.calls.calls()), ns(facts.per_step(found.calls.time_ns())),
                         count(static_cast<std::uint64_t>(*kernels.roofline.device.sm_count))});
  std::vector<std::pair<std::string_view, BlockGroup>> ranked(found.by_name.begin(),
                                                              found.by_name.end());
  sort_rows(ranked.begin(), ranked.end(),
            [](const auto& a, const auto& b) { return a.second.total_ns > b.second.total_ns; });
  for (std::size_t i = 0; i < ranked.size() && i < 3; ++i) {
    const BlockGroup& group = ranked[i].second;
    finding.evidence.push_back(
        {group.longest,
         say(facts, "{} x{}: {} [per step]; the longest has {} [block|blocks]",
             {kernel(ranked[i].first), count(group.calls), ns(facts.per_step(group.total_ns)),
              count(static_cast<std::uint64_t>(group.blocks))})});
  }
  rate_finding(facts, found.calls, finding);
  finding.brief = say("Kernels have too few blocks to fill the GPU");
  if (wide(found.own_ns) * 2 > found.all_ns) {
    tell_of_own_kernel(facts, ranked.front().first, ranked.front().second, finding);
    return finding;
  }
  const bool could_grow = batch_could_grow(facts, facts.links.op_of[raw(found.calls.longest())]);
  finding.try_next = {
      could_grow
          ? "use a larger batch, or put the work of several calls into one (grouped, foreach, "
            "batched)"
          : "put the work of several calls into one (grouped, foreach, batched)",
      "run independent work on a second stream; use channels_last for batch norm"};
  finding.gain_is_bound = true;  // a larger batch does more in the same time, and not in less
  finding.action =
      could_grow
          ? say("Use a larger batch, or join several calls into one (grouped, foreach, batched)")
          : say("If the calls do not need each other: join several into one (grouped, batched)");
  if (wide(found.layers_ns) * 2 > found.all_ns && products_have_few_rows(facts))
    tell_of_few_rows(finding);
  if (wide(found.full_ns) * 2 > found.all_ns) {
    const auto most =
        std::max_element(found.full_ops.begin(), found.full_ops.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    finding.try_next = {
        "their blocks have 65,536 elements or more each: more rows give blocks more work, and make "
        "no more of them. Channels, features or outputs decide their number",
        "another layout (channels_last for batch norm), torch.compile, which splits sums over "
        "blocks, or other work at the same time on a second stream"};
    finding.action = say(
        "Few large blocks in {}, and more rows make no more: try channels_last or torch.compile",
        {name(most->first)});
  }
  if (wide(found.scans_ns) * 2 > found.all_ns) {
    finding.try_next = {
        "a scan along a dimension that is not the last has one thread for each column: more rows "
        "make each thread's way longer, and give the GPU no more blocks. Scan the transposed "
        "tensor along its last dimension, where the threads of a block share a row",
        "where the scan counts one-hot rows: sort the classes (torch.argsort(stable=True)) and "
        "number them within each class, which needs no one-hot matrix"};
    finding.action = say("Scan along the last dimension: x.t().contiguous().cumsum(1).t()");
  }
  if (wide(found.solvers_ns) * 2 > found.all_ns) {
    finding.try_next = {
        "a solver works row by row, and each row needs those before it: more right sides, or a "
        "stack of matrices, in one call use the GPU better",
        "one small system may be faster on the CPU, if it is there already"};
    finding.action = say(
        "A solver works row by row: solve more right sides, or a stack of matrices, in one call");
  }
  return finding;
}

}  // namespace

extern constinit const Rule few_blocks_rule = {
    .id = "few-blocks",
    .question = "do kernels have too few blocks to fill the GPU?",
    .meant_by = "batchsize",
    .order = 560,
    .needs = {need::kGpuWork},
    .only_if = kernels_matter,
    .then_needs = {need::kMultiprocessors},
    .run = measure_and_tell<measure_few_blocks, tell_few_blocks>,
    .fix = Fix::kGpu,
};

}  // namespace lanescope::explain::rules
