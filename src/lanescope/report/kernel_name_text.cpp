#include "lanescope/report/kernel_name_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lanescope/report/text_format.h"

namespace lanescope::report {
namespace {

using analysis::KernelNameTotal;
using analysis::KernelNameTotals;
using names::KernelName;

std::string tile_text(const names::KernelTile& tile) {
  return tile.k ? fmt::format("{}x{}x{}", tile.m, tile.n, *tile.k)
                : fmt::format("{}x{}", tile.m, tile.n);
}

// Fields of the name, in the order in which they are shown: key and text.
std::vector<std::pair<const char*, std::string>> text_fields(const KernelName& name) {
  std::vector<std::pair<const char*, std::string>> fields;
  const auto add = [&fields](const char* key, std::string value) {
    if (!value.empty()) fields.emplace_back(key, std::move(value));
  };
  add("library", name.library);
  add("kind", name.kind);
  add("operation", name.operation);
  add("variant", name.variant);
  add("architecture", name.architecture);
  add("input_type", name.input_type);
  add("accumulate_type", name.accumulate_type);
  add("output_type", name.output_type);
  if (name.tile) add("tile", tile_text(*name.tile));
  if (name.stages) add("stages", std::to_string(*name.stages));
  add("warps", name.warps);
  add("cluster", name.cluster);
  add("layout", name.layout);
  add("epilogue", fmt::format("{}", fmt::join(name.epilogue, ", ")));
  if (name.split_k)
    add("split_k", name.split_k_count ? std::to_string(*name.split_k_count) : std::string("yes"));
  add("fused", fmt::format("{}", fmt::join(name.fused, ", ")));
  if (name.vector_width) add("vector_width", std::to_string(*name.vector_width));
  add("algorithm", name.algorithm);
  add("protocol", name.protocol);
  add("reduction", name.reduction);
  return fields;
}

}  // namespace

std::string kernel_name_text(const KernelName& name) {
  std::string text = one_line(name.text) + '\n';
  if (!name.known()) return text + "  unknown\n";
  for (const auto& [key, value] : text_fields(name))
    text += fmt::format("  {:<16} {}\n", key, one_line(value));
  return text;
}

void write_kernel_name(const KernelName& name, JsonWriter& json) {
  json.text("text", name.text).boolean("known", name.known());
  const auto text = [&json](const char* key, const std::string& value) {
    if (!value.empty()) json.text(key, value);
  };
  const auto list = [&json](const char* key, const std::vector<std::string>& values) {
    if (values.empty()) return;
    json.begin_array(key);
    for (const std::string& value : values) json.text({}, value);
    json.end_array();
  };
  text("library", name.library);
  text("kind", name.kind);
  text("operation", name.operation);
  text("variant", name.variant);
  text("architecture", name.architecture);
  text("input_type", name.input_type);
  text("accumulate_type", name.accumulate_type);
  text("output_type", name.output_type);
  if (name.tile) {
    json.begin_object("tile").integer("m", name.tile->m).integer("n", name.tile->n);
    if (name.tile->k) json.integer("k", *name.tile->k);
    json.end_object();
  }
  if (name.stages) json.integer("stages_count", *name.stages);
  text("warps", name.warps);
  text("cluster", name.cluster);
  text("layout", name.layout);
  list("epilogue", name.epilogue);
  if (name.split_k) json.boolean("split_k", true);
  if (name.split_k_count) json.integer("split_k_count", *name.split_k_count);
  list("fused", name.fused);
  if (name.vector_width) json.integer("vector_width", *name.vector_width);
  text("algorithm", name.algorithm);
  text("protocol", name.protocol);
  text("reduction", name.reduction);
}

std::string kernel_name_totals_text(const Trace& trace, const KernelNameTotals& totals,
                                    int row_limit) {
  if (totals.rows.empty()) return "No device work in this trace.\n";
  std::string text =
      fmt::format("{:>12}  {:>8}  {:>8}  {}\n", "total", "share", "count", "name, raw name");
  const std::size_t shown = rows_shown(totals.rows.size(), row_limit);
  const auto whole = static_cast<double>(totals.total_ns);
  for (std::size_t i = 0; i < shown; ++i) {
    const KernelNameTotal& row = totals.rows[i];
    text += fmt::format("{:>12}  {:>8}  {:>8}  {}{}\n", format_time_ns(row.total_ns),
                        format_percent(static_cast<double>(row.total_ns), whole),
                        format_count(static_cast<std::uint64_t>(row.count)),
                        one_line(row.name.text), row.name.known() ? "" : "  [unknown]");
    text += fmt::format("{:36}{}\n", "", one_line(trace.text(row.raw)));
  }
  if (shown < totals.rows.size())
    text += fmt::format("... {} more names: --row-limit -1 shows all\n",
                        format_count(totals.rows.size() - shown));
  text += fmt::format("{} of GPU time named ({} of {}, {} names)\n",
                      format_percent(static_cast<double>(totals.named_ns), whole),
                      format_time_ns(totals.named_ns), format_time_ns(totals.total_ns),
                      format_count(totals.rows.size()));
  return text;
}

std::string kernel_name_totals_json(const Trace& trace, const KernelNameTotals& totals,
                                    int row_limit) {
  JsonWriter json("name");
  json.integer("total_ns", totals.total_ns).integer("named_ns", totals.named_ns);
  json.integer("row_count", totals.rows.size());
  json.begin_array("names");
  const std::size_t shown = rows_shown(totals.rows.size(), row_limit);
  for (std::size_t i = 0; i < shown; ++i) {
    const KernelNameTotal& row = totals.rows[i];
    json.begin_object().text("name", trace.text(row.raw));
    json.integer("count", row.count).integer("total_ns", row.total_ns);
    write_kernel_name(row.name, json);
    json.end_object();
  }
  json.end_array();
  return json.take();
}

}  // namespace lanescope::report
