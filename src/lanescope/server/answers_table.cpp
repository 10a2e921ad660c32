// Tables of kernels, operators and names; memory; the comparison of two traces.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "lanescope/analysis/thinning.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/explain/compare.h"
#include "lanescope/report/diff_text.h"
#include "lanescope/report/memory_text.h"
#include "lanescope/report/text_format.h"
#include "lanescope/server/answers.h"
#include "lanescope/view/area.h"
#include "lanescope/view/search.h"

namespace lanescope::server {
namespace {

using analysis::KernelGroup;
using report::JsonWriter;

constexpr std::size_t kMostRows = 1000, kMostHolders = 20;

// A column of numbers; the first column of a table is its names.
template <typename Row>
struct Column {
  const char *key, *title, *unit;
  std::function<std::int64_t(const Row&)> value;
};

struct TableRequest {
  std::string sort, filter;
  bool descending = true;
  std::size_t offset = 0, limit = 100;
};

Result<TableRequest> table_request(const Request& request) {
  TableRequest table;
  const auto sort = request.text("sort", ""), filter = request.text("filter", "");
  const auto descending = request.flag("descending", true);
  const auto offset = request.number("offset", 0, 0xFFFFFFFF),
             limit = request.number("limit", 0, kMostRows);
  for (const auto* text : {&sort, &filter})
    if (!*text) return text->error();
  for (const auto* number : {&offset, &limit})
    if (!*number) return number->error();
  if (!descending) return descending.error();
  return TableRequest{*sort, *filter, *descending, static_cast<std::size_t>(offset->value_or(0)),
                      static_cast<std::size_t>(limit->value_or(100))};
}

std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

// Filters, sorts and cuts; `name` is what a row is called, `write_rest` adds more members.
template <typename Row>
std::string table_json(const std::vector<Row>& rows, const std::vector<Column<Row>>& columns,
                       const TableRequest& request,
                       const std::function<std::string(const Row&)>& name,
                       const std::function<void(JsonWriter&, const Row&)>& write_rest) {
  std::vector<const Row*> shown;
  const std::string wanted = lower(request.filter);
  for (const Row& row : rows)
    if (wanted.empty() || lower(name(row)).find(wanted) != std::string::npos) shown.push_back(&row);
  const auto column = std::find_if(columns.begin(), columns.end(),
                                   [&](const auto& each) { return request.sort == each.key; });
  if (request.sort == "name")
    sort_rows(shown.begin(), shown.end(), [&](const Row* a, const Row* b) {
      return request.descending ? name(*b) < name(*a) : name(*a) < name(*b);
    });
  else if (column != columns.end())
    sort_rows(shown.begin(), shown.end(), [&](const Row* a, const Row* b) {
      return request.descending ? column->value(*b) < column->value(*a)
                                : column->value(*a) < column->value(*b);
    });
  JsonWriter json("view");
  json.integer("total", shown.size()).begin_array("columns");
  json.begin_object().text("key", "name").text("title", "Name").text("unit", "text").end_object();
  for (const auto& each : columns)
    json.begin_object()
        .text("key", each.key)
        .text("title", each.title)
        .text("unit", each.unit)
        .end_object();
  json.end_array().begin_array("rows");
  for (std::size_t i = request.offset; i < std::min(shown.size(), request.offset + request.limit);
       ++i) {
    json.begin_object().text("name", name(*shown[i]));
    for (const auto& each : columns) json.integer(each.key, each.value(*shown[i]));
    write_rest(json, *shown[i]);
    json.end_object();
  }
  return json.end_array().take();
}

std::string kernels_json(const TraceState& state, const std::vector<KernelGroup>& groups,
                         const TableRequest& request) {
  const Trace& trace = state.trace();
  static const std::vector<Column<KernelGroup>> kColumns{
      {"busy_ns", "GPU time", "ns", [](const auto& g) { return g.busy_ns; }},
      {"count", "Calls", "count", [](const auto& g) { return static_cast<std::int64_t>(g.count); }},
      {"median_ns", "Median", "ns", [](const auto& g) { return g.median_ns; }},
      {"shortest_ns", "Shortest", "ns", [](const auto& g) { return g.shortest_ns; }},
      {"p95_ns", "95 % below", "ns", [](const auto& g) { return g.p95_ns; }},
      {"longest_ns", "Longest", "ns", [](const auto& g) { return g.longest_ns; }},
  };
  const auto name_id = [&](const KernelGroup& g) {
    return trace.slices().name[raw(g.median_call)];
  };
  return table_json<KernelGroup>(
      groups, kColumns, request,
      [&](const KernelGroup& g) { return short_name(state, name_id(g)); },
      [&](JsonWriter& json, const KernelGroup& g) {
        json.integer("id", raw(name_id(g))).text("full", full_name(state, name_id(g)));
        json.integer("slice", raw(g.median_call));
        json.integer("kind", static_cast<unsigned>(state.lanes().kind(g.median_call)));
        if (g.op != kNone<SliceId>)
          json.text("operator", short_name(state, trace.slices().name[raw(g.op)]));
        const auto args = trace.slice_args(g.median_call);
        for (const auto& [key, arg] :
             {std::pair("grid", ArgKey::kGrid), std::pair("block", ArgKey::kBlock)})
          if (const auto text = args.text(arg))
            json.text(key, report::one_line(trace.text(*text).substr(0, 100)));
      });
}

std::string operators_json(const TraceState& state, const TableRequest& request) {
  using analysis::KeyAverage;
  std::vector<Column<KeyAverage>> columns{
      {"self_cpu_time_total_ns", "CPU self", "ns",
       [](const auto& r) { return r.self_cpu_time_total_ns; }},
      {"cpu_time_total_ns", "CPU total", "ns", [](const auto& r) { return r.cpu_time_total_ns; }},
  };
  // A column of zeros would say that nothing was there, where nothing was recorded.
  if (state.lanes().summary().main_device) {
    columns.push_back({"self_device_time_total_ns", "GPU self", "ns",
                       [](const auto& r) { return r.self_device_time_total_ns; }});
    columns.push_back({"device_time_total_ns", "GPU total", "ns",
                       [](const auto& r) { return r.device_time_total_ns; }});
  }
  columns.push_back({"count", "Calls", "count", [](const auto& r) { return r.count; }});
  const auto& lanes = state.lanes().lanes();
  const auto has_memory = [&](bool of_accelerator) {
    return std::any_of(lanes.begin(), lanes.end(), [&](const view::Lane& lane) {
      return lane.source == view::CounterSource::kAllocated &&
             lane.device.has_value() == of_accelerator;
    });
  };
  if (has_memory(false))
    columns.push_back({"self_cpu_memory_bytes", "CPU memory", "bytes",
                       [](const auto& r) { return r.self_cpu_memory_bytes; }});
  if (has_memory(true))
    columns.push_back({"self_device_memory_bytes", "GPU memory", "bytes",
                       [](const auto& r) { return r.self_device_memory_bytes; }});
  return table_json<KeyAverage>(
      state.key_averages().rows, columns, request,
      [](const KeyAverage& r) { return report::shorten(report::one_line(r.name), 200); },
      [](JsonWriter& json, const KeyAverage& r) { json.boolean("on_device", r.on_device); });
}

std::string area_names_json(const TraceState& state, const Span& span,
                            const TableRequest& request) {
  using view::AreaName;
  std::vector<std::uint32_t> lanes(state.lanes().lanes().size());
  for (std::uint32_t i = 0; i < lanes.size(); ++i) lanes[i] = i;
  const view::Area area =
      view::sum_area(state.lanes(), {span.start_ns, span.end_ns, lanes}, state.known_facts());
  static const std::vector<Column<AreaName>> kColumns{
      {"self_ns", "Self", "ns", [](const auto& r) { return r.self_ns; }},
      {"total_ns", "Total", "ns", [](const auto& r) { return r.total_ns; }},
      {"count", "Calls", "count", [](const auto& r) { return static_cast<std::int64_t>(r.count); }},
  };
  return table_json<AreaName>(
      area.names, kColumns, request, [&](const AreaName& r) { return short_name(state, r.name); },
      [&](JsonWriter& json, const AreaName& r) {
        json.integer("id", raw(r.name)).text("full", full_name(state, r.name));
        json.integer("slice", raw(r.longest)).integer("kind", static_cast<unsigned>(r.kind));
      });
}

void write_shares(JsonWriter& json, const TraceState& state, const char* key,
                  const std::vector<analysis::MemoryShare>& shares) {
  json.begin_array(key);
  for (std::size_t i = 0; i < std::min(shares.size(), kMostHolders); ++i) {
    const auto& owner = state.memory().owners[shares[i].owner];
    json.begin_object().text("text", report::memory_owner_text(state.trace(), owner));
    json.integer("bytes", shares[i].bytes).integer("blocks", shares[i].blocks).end_object();
  }
  json.end_array();
}

}  // namespace

Answer table_answer(const TraceState& state, const Request& request) {
  const auto table = request.text("table", "");
  if (!table) return table.error();
  const auto wanted = table_request(request);
  if (!wanted) return wanted.error();
  const auto span = span_of(state, request);
  if (!span) return span.error();
  if (*table == "kernels")
    return span->is_whole
               ? kernels_json(state, state.kernel_groups(), *wanted)
               : kernels_json(state, state.kernel_groups_within({span->start_ns, span->end_ns}),
                              *wanted);
  if (*table == "operators") return operators_json(state, *wanted);
  if (*table == "names") return area_names_json(state, *span, *wanted);
  return Error{Errc::kInvalidArgument, "expected the table kernels, operators or names"};
}

std::string memory_answer(const TraceState& state) {
  const std::int64_t origin = state.lanes().origin_ns();
  JsonWriter json("view");
  if (const auto end = analysis::find_memory_end(state.trace()))
    json.integer("records_end_ns", *end - origin);
  json.begin_array("devices");
  for (const auto& device : state.memory().devices) {
    json.begin_object();
    json.text("title",
              device.is_accelerator()
                  ? fmt::format("{} {}", analysis::device_type_name(device.type), device.id)
                  : analysis::device_type_name(device.type));
    for (std::uint32_t i = 0; i < state.lanes().lanes().size(); ++i) {
      const view::Lane& lane = state.lanes().lanes()[i];
      if (lane.kind == view::LaneKind::kCounter && lane.source == view::CounterSource::kAllocated &&
          lane.device == (device.is_accelerator() ? std::optional(device.id) : std::nullopt))
        json.integer("lane", i);
    }
    const auto& peak = device.samples[device.peak];
    json.integer("peak_bytes", peak.allocated).integer("peak_ns", peak.time_ns - origin);
    json.boolean("has_totals", device.has_totals).boolean("has_blocks", device.has_blocks);
    if (device.has_reserved) json.integer("peak_reserved_bytes", device.peak_reserved);
    if (device.has_blocks) {
      const analysis::MemoryHeld held = analysis::memory_held(device, device.peak);
      write_shares(json, state, "holders", held.shares);
      json.integer("earlier_bytes", held.earlier_bytes);
      write_shares(json, state, "never_freed",
                   analysis::never_freed(device, device.samples.front().time_ns,
                                         device.samples.back().time_ns + 1));
    }
    json.begin_array("steps");
    auto steps = analysis::compute_memory_steps(state.trace(), device);
    if (steps.size() > kMostListedSteps) steps.clear();  // the whole answer would be too large
    for (const auto& step : steps) {
      json.begin_object()
          .integer("number", step.number)
          .integer("start_ns", step.start_ns - origin);
      json.integer("start_bytes", step.start_bytes).integer("peak_bytes", step.peak_bytes);
      json.integer("end_bytes", step.end_bytes)
          .integer("never_freed_bytes", step.never_freed_bytes)
          .end_object();
    }
    json.end_array().end_object();
  }
  return json.end_array().take();
}

Answer compare_answer(const TraceState& a, const TraceState& b) {
  // As `lanescope diff` does: a step that took longer than all others is why means differ.
  const analysis::StepOptions steps{.count_long_step = true};
  const Result<explain::Facts> a_facts = explain::gather_facts(a.trace(), steps);
  if (!a_facts) return a_facts.error();
  const Result<explain::Facts> b_facts = explain::gather_facts(b.trace(), steps);
  if (!b_facts) return b_facts.error();
  const explain::Comparison comparison = explain::compare(*a_facts, *b_facts);
  report::DiffOptions options{a.path(), b.path(), 100, false};
  return report::diff_json(comparison, options);
}

}  // namespace lanescope::server
