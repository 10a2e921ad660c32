#include <iterator>
#include <optional>
#include <utility>

#include "check_trace.h"
#include "fuzz_support.h"
#include "lanescope/analysis/averages_by_track.h"
#include "lanescope/analysis/dispatch_tree.h"
#include "lanescope/analysis/key_averages.h"
#include "lanescope/analysis/key_averages_list.h"
#include "lanescope/analysis/memory_timeline.h"
#include "lanescope/analysis/slice_nesting.h"
#include "lanescope/analysis/time_span.h"
#include "lanescope/analysis/trace_info.h"
#include "lanescope/codec/json_mend.h"
#include "lanescope/explain/compare.h"
#include "lanescope/explain/facts.h"
#include "lanescope/explain/run_rules.h"
#include "lanescope/report/diff_text.h"
#include "lanescope/report/dispatch_tree_text.h"
#include "lanescope/report/explain_html.h"
#include "lanescope/report/explain_text.h"
#include "lanescope/report/key_averages_table.h"
#include "lanescope/report/memory_text.h"
#include "lanescope/report/trace_info_text.h"

namespace lanescope::fuzz {
namespace {

void require_json(std::string_view text, std::string_view what) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  require(codec::is_strict_json(text), what, text);
}

void check_times(const Trace& trace) {
  const analysis::SliceNesting nesting = analysis::compute_slice_nesting(trace);
  for (std::size_t i = 0; i < nesting.self_ns.size(); ++i)
    require(nesting.self_ns[i] <= trace.slices().dur_ns[i], "self time is within total time");
}

void check_table(const Trace& trace, analysis::TableStyle style) {
  analysis::KeyAveragesOptions grouping;
  grouping.style = style;
  grouping.group_by_input_shape = true;
  grouping.group_by_stack_n = 3;
  const auto table = analysis::compute_key_averages(trace, grouping);
  require(table.has_value(), "every trace has a table");
  for (const analysis::KeyAverage& row : table->rows) {
    require(row.count > 0, "a row counts a call");
    if (style == analysis::TableStyle::kLanescope && !row.is_async)
      require(row.self_cpu_time_total_ns <= row.cpu_time_total_ns, "self CPU is within total CPU",
              row.name);
  }
  require(report::key_averages_text(*table).has_value(), "a table has a text");
  const auto json = report::key_averages_json(*table);
  require(json.has_value(), "a table has its JSON");
  require_json(*json, "the table's JSON is JSON");
  require(report::key_averages_csv(*table).has_value(), "a table has its CSV");
}

// The quick way to the averages says what the list of all events says, wherever tracks are cut.
void check_averages_by_track(const Trace& trace) {
  for (const std::string_view memory : {"[memory]", "[OutOfMemory]"})
    if (trace.strings().find(memory) != kNone<StringId>) return;
  const auto list =
      analysis::key_averages_of_list(trace, {.style = analysis::TableStyle::kLanescope});
  const auto made = analysis::averages_by_track(trace, 2, 64);
  require(list.has_value(), "every trace has averages");
  if (!made) return;
  require(made->rows.size() == list->rows.size(), "as many rows as of the list");
  require(made->device_busy_ns == list->device_busy_ns, "as busy as of the list");
  for (std::size_t i = 0; i < made->rows.size(); ++i) {
    const analysis::KeyAverage &one = made->rows[i], &other = list->rows[i];
    require(one.name == other.name && one.first_event == other.first_event &&
                one.count == other.count && one.is_top_level == other.is_top_level,
            "the same rows as of the list", one.name);
    require(one.cpu_time_total_ns == other.cpu_time_total_ns &&
                one.self_cpu_time_total_ns == other.self_cpu_time_total_ns &&
                one.cpu_time_union_ns == other.cpu_time_union_ns &&
                one.device_time_total_ns == other.device_time_total_ns &&
                one.self_device_time_total_ns == other.self_device_time_total_ns,
            "the same times as of the list", one.name);
  }
}

void check_torch_table(const Trace& trace) { check_table(trace, analysis::TableStyle::kTorch); }
void check_own_table(const Trace& trace) {
  check_table(trace, analysis::TableStyle::kLanescope);
  check_averages_by_track(trace);
}

void check_tree(const Trace& trace) {
  const auto tree = analysis::compute_dispatch_tree(trace);
  require(tree.has_value(), "every trace has a tree");
  report::dispatch_tree_text(*tree);
  require_json(report::dispatch_tree_json(*tree), "the tree's JSON is JSON");
}

void check_memory_and_info(const Trace& trace) {
  const analysis::MemoryTimeline memory = analysis::compute_memory_timeline(trace);
  report::memory_text(trace, memory, 10);
  require_json(report::memory_json(trace, memory), "the memory's JSON is JSON");
  const analysis::TraceInfo info = analysis::compute_trace_info(trace);
  require(!report::trace_info_text(info).empty(), "info says something");
  require_json(report::trace_info_json(info), "the info's JSON is JSON");
}

// Nothing: the times of the trace cannot be one recording.
std::optional<explain::Facts> facts_of(const Trace& trace) {
  auto facts = explain::gather_facts(trace);
  if (!facts) {
    require(analysis::find_far_times(trace).has_value(), "every recording has its facts");
    return std::nullopt;
  }
  return *std::move(facts);
}

void check_walls(const Trace& trace) {
  const auto gathered = facts_of(trace);
  if (!gathered) return;
  const explain::Facts& facts = *gathered;
  for (const explain::DeviceFacts& device : facts.devices) {
    for (const explain::WallTimes& wall : device.walls) {
      const analysis::WallPartition& parts = wall.partition;
      require(parts.compute_ns + parts.exposed_communication_ns + parts.exposed_copy_ns +
                      parts.idle_ns ==
                  parts.wall_ns,
              "the parts of a wall add up");
    }
  }
  const explain::Comparison same = explain::compare(facts, facts);
  require(same.verdict == explain::CompareVerdict::kEqual ||
              same.verdict == explain::CompareVerdict::kNotCompared,
          "a trace equals itself");
  require(!report::diff_text(same, {}).empty(), "diff says something");
  require_json(report::diff_json(same, {}), "diff's JSON is JSON");
}

template <typename Print>
void check_explanation(const Trace& trace, const Print& print) {
  const auto facts = facts_of(trace);
  if (!facts) return;
  const auto explanation = explain::run_rules(*facts);
  require(explanation.has_value(), "all rules run");
  print(*facts, *explanation);
}

void check_explanation_text(const Trace& trace) {
  check_explanation(trace, [](const auto& facts, const auto& explanation) {
    require(!report::explanation_text(facts, explanation).empty(), "explain says something");
    report::explanation_text(facts, explanation, {.markdown = true, .every_rule = true});
  });
}

void check_explanation_json(const Trace& trace) {
  check_explanation(trace, [](const auto& facts, const auto& explanation) {
    require_json(report::explanation_json(facts, explanation), "explain's JSON is JSON");
  });
}

void check_explanation_page(const Trace& trace) {
  check_explanation(trace, [](const auto& facts, const auto& explanation) {
    require(report::explanation_html(facts, explanation).ends_with("</html>\n"),
            "the page is whole");
  });
}

}  // namespace

void check_analyses(const Trace& trace, std::uint64_t choice) {
  using Check = void (*)(const Trace&);
  static constexpr Check kChecks[] = {
      check_times,           check_torch_table, check_own_table,        check_tree,
      check_memory_and_info, check_walls,       check_explanation_text, check_explanation_json,
      check_explanation_page};
  kChecks[choice % std::size(kChecks)](trace);
}

}  // namespace lanescope::fuzz
