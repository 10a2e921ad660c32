// Attention gets a mask of length x length as a tensor, so it computes all pairs of positions, also those that the mask forbids.
//
// Problem: the values of a mask are not recorded. Idea: a window is often made in the step itself, by aten::tril and aten::triu, whose
// diagonals are recorded. Example: ones.tril() & ones.triu(-511) lets each position see 512 others, 6 % of 8,192.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/rules/attention_mask.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/operator_inputs.h"
#include "lanescope/explain/rules/program_calls.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

constexpr double kLeastBandShare = 0.05, kLeastMaskShare = 0.2;  // of the wall of the steady steps
constexpr std::int64_t kLeastMaskLength = 1024;    // shorter: a block mask has few blocks to skip
constexpr std::int64_t kMostMaskLength = 1 << 20;  // longer is damage
constexpr std::int64_t kMaskBlock = 128;           // flex_attention's, by default

bool is_square_of(const analysis::Tensor& tensor, std::int64_t length) {
  return tensor.rank() >= 2 && tensor.dim(0) == length && tensor.dim(1) == length;
}

bool is_bool(const analysis::Tensor& tensor) { return tensor.type->torch == "bool"; }

// A position sees those from `least` to `most` positions after it.
struct Band {
  std::int64_t least = 0, most = 0;
  SliceId made = kNone<SliceId>;  // the last operator that makes the mask
};

// The part of all pairs that the band allows, and of all blocks of 128 x 128 pairs those with an allowed pair.
struct BandShares {
  std::int64_t pairs = 0, all_pairs = 0, blocks = 0, all_blocks = 0;
};
BandShares band_shares(const Band& band, std::int64_t length) {
  BandShares shares;
  for (std::int64_t d = std::max(band.least, 1 - length); d <= std::min(band.most, length - 1); ++d)
    shares.pairs += length - std::abs(d);
  const std::int64_t rows = (length + kMaskBlock - 1) / kMaskBlock;
  for (std::int64_t d = 1 - rows; d < rows; ++d)
    if (d * kMaskBlock - (kMaskBlock - 1) <= band.most &&
        d * kMaskBlock + (kMaskBlock - 1) >= band.least)
      shares.blocks += rows - std::abs(d);
  shares.all_pairs = length * length;
  shares.all_blocks = rows * rows;
  return shares;
}

bool is_and(std::string_view op) {
  return op == "aten::__and__" || op == "aten::bitwise_and" || op == "aten::logical_and" ||
         op == "aten::__iand__" || op == "aten::bitwise_and_" || op == "aten::logical_and_";
}

// How calls[begin..end) make the mask that calls[end] takes.
struct MaskOrigin {
  bool is_made = false;      // one of these calls takes a mask of this size
  std::optional<Band> band;  // they make a band, and nothing changes it
};
MaskOrigin mask_origin(const Trace& trace, const CallSequence& calls, std::size_t begin,
                       std::size_t end, std::int64_t length) {
  MaskOrigin origin;
  Band band;
  std::optional<double> lower, upper;
  for (std::size_t i = end; i-- > begin;) {
    const std::string_view op = trace.name(calls[i]);
    if (is_view(op)) continue;
    const auto inputs = operator_inputs(trace, calls[i]);
    const auto takes_mask = [&](std::size_t index) {
      const auto tensor = inputs.tensor(index);
      return tensor && is_square_of(*tensor, length) && is_bool(*tensor);
    };
    if (!takes_mask(0) && !takes_mask(1)) continue;
    if (band.made == kNone<SliceId>) band.made = calls[i];
    const bool is_first = !origin.is_made;
    origin.is_made = true;
    if (is_and(op) && is_first) continue;
    const bool is_lower_part = op == "aten::tril" || op == "aten::tril_";
    const bool is_upper_part = op == "aten::triu" || op == "aten::triu_";
    const auto diagonal = inputs.number(1);
    if (!diagonal || !(is_lower_part ? !upper : is_upper_part && !lower)) return origin;
    (is_lower_part ? upper : lower) = diagonal;
    if (!lower || !upper) continue;
    const auto most = static_cast<double>(kMostMaskLength);
    if (*lower > *upper || std::abs(*lower) > most || std::abs(*upper) > most) return origin;
    band.least = std::llround(*lower);
    band.most = std::llround(*upper);
    origin.band = band;
    return origin;
  }
  return origin;
}

// The band of the masks of all such attention calls; nothing: unknown, or they differ.
std::optional<Band> band_of_masks(const Facts& facts, std::int64_t length) {
  const Trace& trace = *facts.trace;
  std::optional<Band> common;
  for (const CallSequence& calls : call_sequences(facts)) {
    std::optional<Band> band;
    std::size_t begin = 0;
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (trace.name(calls[i]) != "aten::scaled_dot_product_attention" ||
          masked_length(trace, calls[i]) != length)
        continue;
      const auto mask = operator_inputs(trace, calls[i]).tensor(3);
      if (!mask || !is_bool(*mask)) return std::nullopt;
      const MaskOrigin origin = mask_origin(trace, calls, begin, i, length);
      if (origin.is_made) band = origin.band;  // else the mask of the call before
      if (!band || (common && (common->least != band->least || common->most != band->most)))
        return std::nullopt;
      if (!common) common = band;
      begin = i + 1;
    }
  }
  return common;
}

struct UnskippedPairs {
  Savings found;
  std::int64_t length = 0;
  const KernelCall* longest = nullptr;
  const KernelCall* forward = nullptr;  // the longest call of a forward pass; null: none
  std::optional<Band> band;
  BandShares shares;
};

std::optional<UnskippedPairs> measure_unskipped_pairs(const Facts& facts) {
  const Trace& trace = *facts.trace;
  const auto& kernels = kernel_facts(facts).kernels;
  const auto is_main = [](const KernelCall& kernel) {
    return kernel.is_attention() && kernel.call && kernel.work &&
           kernel.call->kernel == kernel.slice;
  };
  UnskippedPairs dense;
  for (const KernelCall& kernel : kernels) {
    if (!is_main(kernel) || (dense.longest && kernel.call->time_ns <= dense.longest->call->time_ns))
      continue;
    const std::int64_t length = masked_length(trace, kernel.call->op);
    if (length < kLeastMaskLength || length > kMostMaskLength) continue;
    dense.longest = &kernel;
    dense.length = length;
  }
  if (!dense.longest) return std::nullopt;
  dense.band = band_of_masks(facts, dense.length);
  if (dense.band) dense.shares = band_shares(*dense.band, dense.length);
  if (dense.shares.blocks * 2 > dense.shares.all_blocks) dense.band.reset();
  // A causal mask forbids half of the pairs.
  const double spared = dense.band ? 1 - static_cast<double>(dense.shares.blocks) /
                                             static_cast<double>(dense.shares.all_blocks)
                                   : 0.5;
  for (const KernelCall& kernel : kernels) {
    if (!is_main(kernel) || masked_length(trace, kernel.call->op) != dense.length) continue;
    const auto& call = *kernel.call;
    dense.found.add(kernel.slice, call.start_ns, call.end_ns,
                    std::llround(static_cast<double>(call.time_ns) * spared));
    if (!kernel.work->is_attention_backward &&
        (!dense.forward || call.time_ns > dense.forward->call->time_ns))
      dense.forward = &kernel;
  }
  dense.found.finish();
  if (wall_share(facts, dense.found.time_ns()) < (dense.band ? kLeastBandShare : kLeastMaskShare))
    return std::nullopt;
  return dense;
}

void tell_band(const Facts& facts, const UnskippedPairs& dense, Finding& finding) {
  const Trace& trace = *facts.trace;
  const BandShares& shares = dense.shares;
  append(finding.verdict,
         say(" The mask allows {} of the pairs.", {ratio(shares.pairs, shares.all_pairs)}));
  finding.arithmetic.push_back(
      say("aten::tril with the diagonal {} and aten::triu with the diagonal {} make the mask: it "
          "allows {} of {} pairs",
          {text(std::to_string(dense.band->most)), text(std::to_string(dense.band->least)),
           count(static_cast<std::uint64_t>(shares.pairs)),
           count(static_cast<std::uint64_t>(shares.all_pairs))}));
  finding.arithmetic.push_back(
      say("at stake: the time of the blocks of 128 x 128 pairs without an allowed pair; {} of {} "
          "blocks have one",
          {count(static_cast<std::uint64_t>(shares.blocks)),
           count(static_cast<std::uint64_t>(shares.all_blocks))}));
  finding.evidence.push_back(called_at(
      facts, dense.band->made, say("{} makes the mask", {name(trace.name(dense.band->made))})));
  finding.try_next = {
      "use torch.nn.attention.flex_attention with a block mask (create_block_mask), compiled: it "
      "skips the blocks that the mask empties",
      "or cut the sequence into blocks as long as the window; each block attends to itself and to "
      "the one before"};
  finding.brief =
      say("Attention computes all pairs of {} positions; its mask allows {} of them",
          {count(static_cast<std::uint64_t>(dense.length)), ratio(shares.pairs, shares.all_pairs)});
  finding.action =
      say("flex_attention with a block mask skips the rest; so do blocks of the window");
}

void tell_unknown_mask(const UnskippedPairs& dense, Finding& finding) {
  finding.arithmetic.push_back(
      say("what the mask allows is not known; at stake is half of the time, as for a causal mask. "
          "A window forbids more, and a mask that forbids little gains nothing"));
  finding.try_next = {
      "if the mask is the causal one, pass is_causal=True and no attn_mask: half of the pairs are "
      "not computed then, and FlashAttention applies, which takes no mask",
      "for a window or blocks use torch.nn.attention.flex_attention with a block mask: it skips "
      "what the mask empties"};
  finding.brief =
      say("Attention with a mask computes all pairs of {} positions, also forbidden ones",
          {count(static_cast<std::uint64_t>(dense.length))});
  finding.action =
      say("A causal mask: is_causal=True instead. A window or blocks: flex_attention with a block "
          "mask");
}

Finding tell_unskipped_pairs(const Facts& facts, const UnskippedPairs& dense) {
  const std::int64_t time_ns = dense.found.time_ns();
  const Value length = count(static_cast<std::uint64_t>(dense.length));
  Finding finding;
  finding.verdict = say(
      facts,
      "Attention takes {} [per step] ({}) with a mask of {} x {} as a tensor: it "
      "computes all pairs of positions, also those that the mask forbids.",
      {ns(facts.per_step(time_ns)), ratio(time_ns, facts.wall.partition.wall_ns), length, length});
  rate_finding(facts, dense.found, finding);
  if (dense.forward)
    finding.evidence.push_back(
        {dense.forward->slice,
         say("the longest forward pass, {}", {kernel(facts.trace->name(dense.forward->slice))})});
  if (dense.longest != dense.forward)
    finding.evidence.push_back(
        {dense.longest->slice,
         say("the longest call, {}", {kernel(facts.trace->name(dense.longest->slice))})});
  if (dense.band)
    tell_band(facts, dense, finding);
  else
    tell_unknown_mask(dense, finding);
  for (const char* covered : {"slow-attention", "no-roof", "costly-operator"})
    finding.explains.push_back({covered, facts.per_step(time_ns)});
  return finding;
}

}  // namespace

extern constinit const Rule unskipped_pairs_rule = {
    .id = "unskipped-pairs",
    .question = "does attention compute pairs that its mask forbids?",
    .meant_by = "attention mask window band causal sliding local flex",
    .order = 532,
    .needs = {need::kGpuWork},
    .only_if = kernels_decide,
    .then_needs = {need::kShapes},
    .run = measure_and_tell<measure_unskipped_pairs, tell_unskipped_pairs>,
    .fix = Fix::kGpu,
    .fix_is_bound = true,
};

}  // namespace lanescope::explain::rules
