#include "lanescope/report/event_name_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "lanescope/names/events/words.h"
#include "lanescope/report/json_writer.h"
#include "lanescope/report/kernel_name_text.h"
#include "lanescope/report/text_format.h"

namespace lanescope::report {
namespace {

using analysis::EventNameTotal;
using analysis::EventNameTotals;
using names::EventKind;
using names::EventName;
using names::KernelName;

constexpr const char* kWhatCanBeNamed =
    "  lanescope knows names of GPU kernels, torch and CUDA. All names of a trace: lanescope "
    "describe --trace TRACE --events\n";

// False for names that only kernels have, and for names that both may have.
bool is_event(const EventName& event, const KernelName& kernel) {
  return event.known() && !(event.may_be_kernel && kernel.known());
}

// Is an unknown name a C++ function? It is then shown like a kernel, without brackets.
bool is_function_signature(std::string_view name) {
  return name.starts_with("_Z") || name.find('<') != name.npos || name.find('(') != name.npos;
}

// The raw name if the row has only one, else the group with "*".
std::string_view name_of_row(const Trace& trace, const EventNameTotal& row) {
  return row.name_count == 1 ? trace.text(row.raw) : std::string_view(row.name.group);
}

// Cut, because names of templates can have megabytes; --json has all of it.
constexpr std::size_t kLongestShown = 500;

std::string shown_name(std::string_view name) {
  return one_line(names::events::shortened(name, kLongestShown));
}

// Kinds with thousands of rows and few different sentences: each sentence is printed once per kind.
bool repeats_sentences(EventKind kind) {
  return kind == EventKind::kPythonFrame || kind == EventKind::kAutogradEngine;
}

std::string meaning(const Trace& trace, const EventNameTotal& row) {
  const EventName& name = row.name;
  if (!name.known())
    return row.category == kNone<StringId>
               ? std::string("unknown")
               : fmt::format("unknown; recorded as {}", trace.text(row.category));
  return name.cpu_waits.starts_with("yes")
             ? fmt::format("{} Does the CPU wait? {}.", name.what, name.cpu_waits)
             : name.what;
}

}  // namespace

void write_event_name(const EventName& name, bool with_details, JsonWriter& json) {
  json.text("text", name.text).boolean("known", name.known());
  json.text("kind", names::event_kind_name(name.kind));
  const auto text = [&json](const char* key, const std::string& value) {
    if (!value.empty()) json.text(key, value);
  };
  text("what", name.what);
  text("cpu_waits", name.cpu_waits);
  text("gpu_work", name.gpu_work);
  text("note", name.note);
  text("rule", name.rule);
  if (name.by_category) json.boolean("by_category", true);
  if (!with_details || name.details.empty()) return;
  json.begin_object("details");
  for (const auto& [key, value] : name.details) json.text(key, value);
  json.end_object();
}

std::string event_name_text(std::string_view raw_name, const EventName& name) {
  std::string text = shown_name(raw_name) + '\n';
  if (!name.known()) return text + "  unknown\n";
  const auto add = [&text](std::string_view key, std::string_view value) {
    if (!value.empty()) text += wrapped(fmt::format("  {:<16} ", key), one_line(value));
  };
  add("kind", names::event_kind_name(name.kind));
  add("text", name.text);
  add("what", name.what);
  add("cpu_waits", name.cpu_waits);
  add("gpu_work", name.gpu_work);
  add("note", name.note);
  if (!name.rule.empty()) add("rule", fmt::format("{0}: docs/rules/{0}.md", name.rule));
  for (const auto& [key, value] : name.details) add(key, value);
  return text;
}

std::string names_text(std::span<const std::string> raw_names) {
  std::string text;
  bool said = false;
  for (const std::string& raw_name : raw_names) {
    const EventName event = names::explain_event_name(raw_name);
    const KernelName kernel = names::parse_kernel_name(raw_name);
    if (is_event(event, kernel)) {
      text += event_name_text(raw_name, event);
    } else if (kernel.known()) {
      text += kernel_name_text(kernel);
    } else {
      text += is_function_signature(raw_name) ? kernel_name_text(kernel)
                                              : event_name_text(raw_name, event);
      if (!said) text += kWhatCanBeNamed;
      said = true;
    }
  }
  return text;
}

std::string names_json(std::span<const std::string> raw_names) {
  JsonWriter json("name");
  json.begin_array("names");
  for (const std::string& raw_name : raw_names) {
    const EventName event = names::explain_event_name(raw_name);
    const KernelName kernel = names::parse_kernel_name(raw_name);
    json.begin_object().text("name", raw_name);
    if (is_event(event, kernel))
      write_event_name(event, true, json);
    else
      write_kernel_name(kernel, json);
    json.end_object();
  }
  json.end_array();
  return json.take();
}

std::string event_name_totals_text(const Trace& trace, const EventNameTotals& totals,
                                   int row_limit) {
  if (totals.rows.empty()) return "No events except GPU work in this trace.\n";
  std::string text;
  const std::size_t shown = rows_shown(totals.rows.size(), row_limit);
  // Consecutive rows with the same sentence print it once; kinds that repeat sentences print each
  // one once per kind.
  std::vector<std::string> said;
  for (std::size_t i = 0; i < shown; ++i) {
    const EventNameTotal& row = totals.rows[i];
    if (i == 0 || row.name.kind != totals.rows[i - 1].name.kind) {
      text += fmt::format("{}{}\n{:>12}  {:>10}  {}\n", i == 0 ? "" : "\n",
                          names::event_kind_name(row.name.kind), "total", "count", "name");
      said.clear();
    }
    text += fmt::format("{:>12}  {:>10}  {}\n", format_time_ns(row.total_ns),
                        format_count(static_cast<std::uint64_t>(row.count)),
                        shown_name(name_of_row(trace, row)));
    const std::string sentence = meaning(trace, row);
    if (std::find(said.begin(), said.end(), sentence) != said.end()) continue;
    if (!repeats_sentences(row.name.kind)) said.clear();
    said.push_back(sentence);
    text += wrapped(std::string(28, ' '), one_line(sentence));
  }
  if (shown < totals.rows.size())
    text += fmt::format("... {} more names: --row-limit -1 shows all\n",
                        format_count(totals.rows.size() - shown));
  text += fmt::format(
      "\n{} of events known ({} of {}, {} names); nested rows count in both\n",
      format_percent(static_cast<double>(totals.known_count), static_cast<double>(totals.count)),
      format_count(static_cast<std::uint64_t>(totals.known_count)),
      format_count(static_cast<std::uint64_t>(totals.count)), format_count(totals.rows.size()));
  return text;
}

std::string event_name_totals_json(const Trace& trace, const EventNameTotals& totals,
                                   int row_limit) {
  JsonWriter json("name");
  json.integer("event_count", totals.count).integer("known_count", totals.known_count);
  json.integer("row_count", totals.rows.size());
  json.begin_array("events");
  const std::size_t shown = rows_shown(totals.rows.size(), row_limit);
  for (std::size_t i = 0; i < shown; ++i) {
    const EventNameTotal& row = totals.rows[i];
    json.begin_object().text("name", name_of_row(trace, row));
    json.integer("name_count", row.name_count);
    if (row.category != kNone<StringId>) json.text("category", trace.text(row.category));
    json.integer("count", row.count).integer("total_ns", row.total_ns);
    write_event_name(row.name, row.name_count == 1, json);
    json.end_object();
  }
  json.end_array();
  return json.take();
}

}  // namespace lanescope::report
