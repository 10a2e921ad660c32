#include "lanescope/explain/rules/copy_sources.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>

#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/facts_memo.h"
#include "lanescope/explain/rules/autograd_pairs.h"

namespace lanescope::explain::rules {
namespace {

bool asks_for_layout(std::string_view op) {
  static constexpr std::string_view kOps[] = {"aten::contiguous", "aten::clone", "aten::reshape",
                                              "aten::_reshape_copy", "aten::flatten"};
  return std::find(std::begin(kOps), std::end(kOps), op) != std::end(kOps);
}

bool asks_for_type(std::string_view op) { return op == "aten::to" || op == "aten::_to_copy"; }

// torch names the kernels of such casts; others look like copies.
bool casts_by_name(std::string_view kernel) {
  return kernel.find("float16_copy_kernel") != kernel.npos ||
         kernel.find("LoadWithCast") != kernel.npos;
}

SourcedCopy source_of(const Facts& facts, const KernelCall& kernel) {
  const Trace& trace = *facts.trace;
  SourcedCopy copy{&kernel, kNone<SliceId>, kernel.op, casts_by_name(trace.name(kernel.slice)),
                   false};
  for (SliceId op = facts.nesting.parent[raw(kernel.op)];
       op != kNone<SliceId> && trace.kind(op) == CategoryKind::kCpuOp;
       op = facts.nesting.parent[raw(op)]) {
    const std::string_view label = trace.name(op);
    if (label.starts_with("ProfilerStep")) break;  // torch before 1.11
    copy.outermost = op;
    if (copy.asker != kNone<SliceId>) continue;
    if (asks_for_type(label))
      copy.is_cast = true;
    else if (asks_for_layout(label))
      copy.is_layout = true;
    else
      copy.asker = op;
  }
  copy.is_layout = copy.is_layout && !copy.is_cast;
  return copy;
}

std::vector<SourcedCopy> make_sourced_copies(const Facts& facts) {
  std::vector<SourcedCopy> copies;
  for (const KernelCall& kernel : kernel_facts(facts).kernels)
    if (kernel.op != kNone<SliceId> && facts.trace->name(kernel.op) == "aten::copy_")
      copies.push_back(source_of(facts, kernel));
  return copies;
}

}  // namespace

const std::vector<SourcedCopy>& sourced_copies(const Facts& facts) {
  return made_once<make_sourced_copies>(facts);
}

std::vector<CopySource> copy_sources(const Facts& facts) {
  std::map<std::string_view, std::int64_t> times;
  for (const SourcedCopy& copy : sourced_copies(facts)) {
    times[without_evaluate(facts.trace->name(copy.outermost))] += copy.kernel->dur_ns();
  }
  std::vector<CopySource> sources;
  for (const auto& [label, time_ns] : times) sources.push_back({label, time_ns});
  sort_rows(sources.begin(), sources.end(),
            [](const CopySource& a, const CopySource& b) { return a.time_ns > b.time_ns; });
  return sources;
}

}  // namespace lanescope::explain::rules
