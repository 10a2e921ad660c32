// Key averages on the page.
#include <fmt/format.h>

#include <algorithm>

#include "lanescope/analysis/key_averages.h"
#include "lanescope/base/sort_rows.h"
#include "lanescope/names/kernel_name.h"
#include "lanescope/report/explain_html.h"
#include "lanescope/report/explain_html_sections.h"
#include "lanescope/report/html_escape.h"
#include "lanescope/report/text_format.h"

namespace lanescope::report {
namespace {

using analysis::KeyAverage;

constexpr std::size_t kCellWidth = 60, kRawWidth = 160;

std::string name_cell(const KeyAverage& row) {
  const auto kernel = row.on_device && !row.is_annotation ? names::parse_kernel_name(row.name)
                                                          : names::KernelName{};
  const std::string raw = html_shortened(row.name, kRawWidth);
  if (!kernel.known())
    return fmt::format("<th scope=\"row\" title=\"{}\">{}</th>", raw,
                       html_shortened(row.name, kCellWidth));
  return fmt::format("<th scope=\"row\" title=\"{}\">{}<small>{}</small></th>", raw,
                     html_shortened(kernel.text, kCellWidth), html_shortened(row.name, kCellWidth));
}

std::string time_cell(std::int64_t ns) {
  return fmt::format("<td class=\"n\" data-v=\"{}\">{}</td>", ns, format_time_ns(ns));
}

std::string share_cell(std::int64_t part, std::int64_t whole) {
  return whole <= 0 ? std::string("<td class=\"n\" data-v=\"0\">-</td>")
                    : fmt::format("<td class=\"n\" data-v=\"{0:.4f}\">{0:.2f}%</td>",
                                  static_cast<double>(part) * 100 / static_cast<double>(whole));
}

}  // namespace

std::string key_averages_section_html(const Trace& trace) {
  const auto table =
      analysis::compute_key_averages(trace, {.style = analysis::TableStyle::kLanescope});
  if (!table || table->rows.empty()) return {};
  const bool has_device = !table->device.empty();
  const auto key =
      has_device ? &KeyAverage::self_device_time_total_ns : &KeyAverage::self_cpu_time_total_ns;
  std::vector<const KeyAverage*> rows;
  std::int64_t all_cpu_ns = 0, all_device_ns = 0;
  for (const KeyAverage& row : table->rows) {
    rows.push_back(&row);
    all_cpu_ns += row.self_cpu_time_total_ns;
    // docs/definitions/key_averages.md, Sums: device rows only, else kernels would count twice.
    if (row.on_device && !row.is_annotation) all_device_ns += row.self_device_time_total_ns;
  }
  sort_rows(rows.begin(), rows.end(),
            [&](const KeyAverage* a, const KeyAverage* b) { return a->*key > b->*key; });
  const std::size_t shown = std::min(rows.size(), kMostTableRows);
  std::string html = fmt::format(
      "<section id=\"table\">\n<h2>Time by name</h2>\n<p>Over the whole trace. Self time is a "
      "row's own, total time includes what it called; an operator's GPU time is that of the "
      "kernels it launched, which have rows of their own. The first {} of {} rows by self {} time; "
      "<code>lanescope table</code> has all.</p>\n",
      shown, format_count(rows.size()), has_device ? "GPU" : "CPU");
  html +=
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Time by name\"><table "
      "class=\"sortable\"><thead><tr><th scope=\"col\">name</th>";
  const auto head = [&](const char* name, bool is_sorted = false) {
    html += fmt::format("<th scope=\"col\" class=\"n\"{}>{}</th>",
                        is_sorted ? " aria-sort=\"descending\"" : "", name);
  };
  if (has_device) {
    head("self GPU", true);
    head("share");
    head("GPU total");
  }
  head("self CPU", !has_device);
  head("share");
  head("CPU total");
  head("calls");
  html += "</tr></thead><tbody>\n";
  for (std::size_t i = 0; i < shown; ++i) {
    const KeyAverage& row = *rows[i];
    html += "<tr>" + name_cell(row);
    if (has_device)
      html += time_cell(row.self_device_time_total_ns) +
              share_cell(row.self_device_time_total_ns, row.is_annotation ? 0 : all_device_ns) +
              time_cell(row.device_time_total_ns);
    html += time_cell(row.self_cpu_time_total_ns) +
            share_cell(row.self_cpu_time_total_ns, all_cpu_ns) + time_cell(row.cpu_time_total_ns);
    html += fmt::format("<td class=\"n\" data-v=\"{0}\">{1}</td></tr>\n", row.count,
                        format_count(static_cast<std::uint64_t>(row.count)));
  }
  return html + "</tbody></table></div>\n</section>\n";
}

}  // namespace lanescope::report
