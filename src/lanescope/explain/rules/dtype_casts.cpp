// Casts to a wider type and back, around operators that work in the narrow type as well.
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lanescope/analysis/tensor_arguments.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/kernel_facts.h"
#include "lanescope/explain/rules/evidence.h"
#include "lanescope/explain/rules/rules.h"

namespace lanescope::explain::rules {

namespace {

constexpr std::size_t kMostBetween = 3;  // elementwise kernels from one cast to the other

struct DtypeCast {
  bool widens = false;  // bfloat16 -> float32; else back
  std::string_view from = {},
                   to = {};    // as the trace names types; empty: only the kernel's name tells
  std::string_view dims = {};  // of its inputs; empty: not recorded
};

// The texts in the quotes of a JSON list: ["float", "c10::BFloat16", "Scalar"].
std::vector<std::string_view> quoted(std::string_view list) {
  std::vector<std::string_view> texts;
  while (true) {
    const std::size_t open = list.find('"');
    if (open == list.npos) return texts;
    const std::size_t close = list.find('"', open + 1);
    if (close == list.npos) return texts;
    texts.push_back(list.substr(open + 1, close - open - 1));
    list.remove_prefix(close + 1);
  }
}

// 0: no floating-point type.
int float_bytes(std::string_view type) {
  if (type == "double") return 8;
  if (type == "float") return 4;
  if (type == "c10::BFloat16" || type == "c10::Half") return 2;
  if (type.starts_with("c10::Float8")) return 1;
  return 0;
}

std::optional<DtypeCast> cast_by_types(std::string_view types, std::string_view dims) {
  const auto both = quoted(types);  // copy_(to, from)
  if (both.size() < 2) return std::nullopt;
  const int to = float_bytes(both[0]), from = float_bytes(both[1]);
  if (to == 0 || from == 0 || to == from) return std::nullopt;
  return DtypeCast{.widens = to > from, .from = both[1], .to = both[0], .dims = dims};
}

// For calls without recorded inputs. ATen has a special kernel for float -> bfloat16; other casts
// happen while a kernel loads its input.
std::optional<DtypeCast> cast_by_name(std::string_view name) {
  if (name.find("float16_copy_kernel") != name.npos) return DtypeCast{.widens = false};
  if (name.find("direct_copy_kernel") != name.npos && name.find("LoadWithCast") != name.npos &&
      name.find("lambda(float)") != name.npos)
    return DtypeCast{.widens = true};
  return std::nullopt;
}

std::optional<DtypeCast> cast_of(const Facts& facts, const KernelCall& kernel) {
  const Trace& trace = *facts.trace;
  if (kernel.op == kNone<SliceId> || trace.name(kernel.op) != "aten::copy_") return std::nullopt;
  const auto args = trace.slice_args(kernel.op);
  const auto types = args.text(ArgKey::kInputType), dims = args.text(ArgKey::kInputDims);
  return types ? cast_by_types(trace.text(*types), dims ? trace.text(*dims) : std::string_view())
               : cast_by_name(trace.name(kernel.slice));
}

bool is_pointwise(const Facts& facts, const KernelCall& kernel) {
  return kernel.name->kind == "elementwise" ||
         facts.trace->name(kernel.slice).find("elementwise_kernel") != std::string_view::npos;
}

struct Detours {
  Savings kernels;
  std::uint64_t detours = 0;
  std::int64_t casts_ns = 0, between_ns = 0;
  std::map<std::string, Named> by_operators;  // what happens in the wide type
  std::string narrow, wide;                   // of the first; empty: not recorded
};

void add_detour(const Facts& facts, const std::vector<const KernelCall*>& way,
                const DtypeCast& down, Detours& found) {
  std::string operators;
  const KernelCall &first = *way.front(), &last = *way.back();
  if (found.detours++ == 0 && !down.to.empty()) {
    found.narrow = analysis::python_type_name(down.to);
    found.wide = analysis::python_type_name(down.from);
  }
  found.casts_ns += first.dur_ns() + last.dur_ns();
  found.kernels.add(first, first.dur_ns());
  found.kernels.add(last, last.dur_ns());
  std::int64_t whole_ns = first.dur_ns() + last.dur_ns();
  for (std::size_t i = 1; i + 1 < way.size(); ++i) {
    found.between_ns += way[i]->dur_ns();
    whole_ns += way[i]->dur_ns();
    found.kernels.add(*way[i], way[i]->dur_ns() / 2);
    if (!operators.empty()) operators += ", ";
    operators += way[i]->op == kNone<SliceId> ? way[i]->name->text
                                              : std::string(facts.trace->name(way[i]->op));
  }
  found.by_operators[operators].add(first.slice, whole_ns);
}

std::optional<Detours> measure_dtype_casts(const Facts& facts) {
  std::map<std::uint32_t, std::vector<const KernelCall*>> streams;
  for (const KernelCall& kernel : kernel_facts(facts).kernels)
    streams[raw(facts.trace->slices().track[raw(kernel.slice)])].push_back(&kernel);
  Detours found;
  for (const auto& [track, kernels] : streams) {
    std::vector<const KernelCall*> way;  // from a cast that widens; empty: none is open
    DtypeCast up;
    for (const KernelCall* kernel : kernels) {
      const auto cast = cast_of(facts, *kernel);
      if (cast && cast->widens) {
        way = {kernel};
        up = *cast;
      } else if (!way.empty() && cast && up.from == cast->to && up.to == cast->from &&
                 up.dims == cast->dims && way.size() > 1) {
        way.push_back(kernel);
        add_detour(facts, way, *cast, found);
        way.clear();
      } else if (!way.empty() && !cast && is_pointwise(facts, *kernel) &&
                 way.size() <= kMostBetween) {
        way.push_back(kernel);
      } else {
        way.clear();
      }
    }
  }
  found.kernels.finish();
  if (found.detours == 0 || wall_share(facts, found.kernels.saved_ns()) < 0.02) return std::nullopt;
  return found;
}

Finding tell_dtype_casts(const Facts& facts, const Detours& found) {
  const bool types_known = !found.narrow.empty();
  const std::string wide = types_known ? found.wide : "a wider type";
  const std::string narrow = types_known ? found.narrow : "the narrow type";
  const auto steps = static_cast<std::uint64_t>(facts.selection.steady.size());
  Finding finding;
  finding.verdict =
      say(facts,
          "Tensors are cast to {} and back, {} [time|times] [in {} steps], for a few elementwise "
          "operators: the casts take {} [per step], and the operators between them {}.",
          {text(wide), count(found.detours), count(steps), ns(facts.per_step(found.casts_ns)),
           ns(facts.per_step(found.between_ns))});
  rate_finding(facts, found.kernels, finding);
  finding.arithmetic.push_back(say(
      facts,
      "without the casts {} go, and in {} the operators between them move half the bytes, so half "
      "of {} goes: at most {} [per step]",
      {ns(facts.per_step(found.casts_ns)), text(narrow), ns(facts.per_step(found.between_ns)),
       ns(facts.per_step(found.kernels.saved_ns()))}));
  std::vector<std::pair<std::string, Named>> ranked(found.by_operators.begin(),
                                                    found.by_operators.end());
  sort_rows(ranked.begin(), ranked.end(),
            [](const auto& a, const auto& b) { return a.second.time_ns > b.second.time_ns; });
  for (std::size_t i = 0; i < ranked.size() && i < 3; ++i) {
    Sentence line = say(facts, "cast, {}, cast back x{}: {} [per step]",
                        {name(ranked[i].first), count(ranked[i].second.count),
                         ns(facts.per_step(ranked[i].second.time_ns))});
    add_line(facts, facts.links.launch_of[raw(ranked[i].second.longest)], line);
    finding.evidence.push_back({ranked[i].second.longest, std::move(line)});
  }
  finding.try_next = {
      "leave out .float() and .to(...) around operators that work in " + narrow +
          " (relu, gelu, add, mul, clamp: they compute each element in float32 anyway)",
      "where the digits matter (a sum of many steps), torch.compile the function: it casts inside "
      "one kernel"};
  finding.sample_count = found.detours;
  finding.sample_noun = "detour";
  finding.explains.push_back({"unfused-chain", finding.at_stake_ns});
  finding.explains.push_back({"back-and-forth", facts.per_step(found.casts_ns)});
  finding.brief = say(facts, "Tensors are cast to {} and back, {} [time|times] [in {} steps]",
                      {text(wide), count(found.detours), count(steps)});
  finding.action =
      say("Stay in {}: leave out .float() and .to(...) around these operators", {text(narrow)});
  return finding;
}

}  // namespace

extern constinit const Rule dtype_casts_rule = {
    .id = "dtype-casts",
    .question = "are tensors cast to another type and back?",
    .meant_by = "dtype cast precision",
    .order = 665,
    .needs = {need::kGpuWork, need::kLaunchCalls},
    .only_if = kernels_matter,
    .run = measure_and_tell<measure_dtype_casts, tell_dtype_casts>,
    .fix = Fix::kGpu,
};

}  // namespace lanescope::explain::rules
