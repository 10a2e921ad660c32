#include "lanescope/explain/sampled_workers.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include "lanescope/analysis/python_flame.h"
#include "lanescope/explain/sampled_code.h"
#include "lanescope/explain/sampled_lines.h"
#include "lanescope/model/child_process.h"

namespace lanescope::explain {
namespace {

using analysis::FlameNode;
using analysis::PythonFlame;

// torch/utils/data/_utils/fetch.py(47): fetch
bool is_fetch(std::string_view function) {
  return function.ends_with(": fetch") &&
         function.find("_utils/fetch.py(") != std::string_view::npos;
}

// By node: whether it is in a worker's loop, and whether it is inside fetch(). Other
// threads of a worker, such as the one that feeds its queue, are in neither.
struct Places {
  std::vector<char> is_worker, is_busy;
  std::vector<std::uint32_t> fetches;  // the outermost ones
};

Places find_places(const Trace& trace, const PythonFlame& flame) {
  Places found{std::vector<char>(flame.nodes.size()), std::vector<char>(flame.nodes.size()), {}};
  std::vector<char> is_in_process(flame.nodes.size());
  for (std::uint32_t i = 0; i < flame.nodes.size(); ++i) {  // callers come first
    const FlameNode& node = flame.nodes[i];
    const std::string_view function = trace.text(node.function);
    if (node.parent == i) {
      is_in_process[i] = function.starts_with(kLoaderWorkerName);
      continue;
    }
    is_in_process[i] = is_in_process[node.parent];
    found.is_worker[i] =
        found.is_worker[node.parent] || (is_in_process[i] && is_loader_worker_loop(function));
    found.is_busy[i] = found.is_busy[node.parent];
    if (!found.is_worker[i] || found.is_busy[i] || !is_fetch(function)) continue;
    found.is_busy[i] = 1;
    found.fetches.push_back(i);
  }
  return found;
}

struct Deepest {
  StringId function = kNone<StringId>;
  std::int64_t samples = 0;
};

// From fetch() inwards, over all workers together: as long as one function has half of `busy`.
Deepest find_deepest(const PythonFlame& flame, std::vector<std::uint32_t> at, std::int64_t busy) {
  Deepest found;
  while (true) {
    std::map<std::uint32_t, std::int64_t> totals;  // by function
    std::vector<char> is_at(flame.nodes.size());
    for (const std::uint32_t node : at) is_at[node] = 1;
    for (std::uint32_t i = 0; i < flame.nodes.size(); ++i)
      if (flame.nodes[i].parent != i && is_at[flame.nodes[i].parent])
        totals[raw(flame.nodes[i].function)] += flame.nodes[i].total;
    const auto most =
        std::max_element(totals.begin(), totals.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most == totals.end() || most->second * 2 < busy) return found;
    found = {StringId{most->first}, most->second};
    at.clear();
    for (std::uint32_t i = 0; i < flame.nodes.size(); ++i)
      if (flame.nodes[i].parent != i && is_at[flame.nodes[i].parent] &&
          raw(flame.nodes[i].function) == most->first)
        at.push_back(i);
  }
}

}  // namespace

std::optional<WorkerCode> find_worker_code(const Trace& trace,
                                           std::span<const analysis::Window> stretches) {
  analysis::FlameOptions options;
  options.source = analysis::FlameSource::kSamples;
  options.within.emplace();
  for (const analysis::Window& each : stretches)
    options.within->emplace_back(each.start_ns, each.end_ns);
  const auto flame = analysis::compute_python_flame(trace, options);
  if (!flame) return std::nullopt;
  const Places places = find_places(trace, *flame);
  WorkerCode code;
  for (std::uint32_t i = 0; i < flame->nodes.size(); ++i) {
    if (places.is_worker[i]) code.samples += flame->nodes[i].self;
    if (places.is_busy[i]) code.busy += flame->nodes[i].self;
  }
  if (code.samples < kLeastSamples) return std::nullopt;
  if (code.busy < kLeastSamples) return code;
  const Deepest deepest = find_deepest(*flame, places.fetches, code.busy);
  if (deepest.function == kNone<StringId>) return code;
  code.function = trace.text(deepest.function);
  code.in_function = deepest.samples;
  code.line = main_line(trace, deepest.function, stretches, Counted::kAll);
  return code;
}

Sentence describe(const WorkerCode& code) {
  const auto number = [](std::int64_t value) { return count(static_cast<std::uint64_t>(value)); };
  Sentence sentence =
      say("they made batches in {} ({} of {} samples)",
          {ratio(code.busy, code.samples), number(code.busy), number(code.samples)});
  if (code.function.empty()) return sentence;
  append(sentence,
         say(", about {} of that ({} samples) in {}",
             {ratio(code.in_function, code.busy), number(code.in_function), name(code.function)}));
  if (code.line) append(sentence, say(", mostly at line {}", {number(*code.line)}));
  return sentence;
}

}  // namespace lanescope::explain
