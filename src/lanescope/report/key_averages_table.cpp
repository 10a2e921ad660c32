// Rules 9 to 12 of docs/definitions/key_averages.md: columns, widths, formats and footer as torch
// writes them.
#include "lanescope/report/key_averages_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <unordered_map>

#include "lanescope/names/kernel_name.h"
#include "lanescope/report/key_averages_rows.h"
#include "lanescope/report/text_format.h"

namespace lanescope::report {
namespace {

using analysis::KeyAverage;
using analysis::KeyAverages;
using analysis::TableStyle;

constexpr std::size_t kColumnWidth = 12;

Result<void> check_widths(const TableOptions& options) {
  for (const auto& [name, width] : {std::pair("name", options.max_name_column_width),
                                    std::pair("source", options.max_src_column_width),
                                    std::pair("shapes", options.max_shapes_column_width)})
    if (width && *width < 1)
      return Error{Errc::kInvalidArgument,
                   fmt::format("the {} column must be at least 1 wide, not {}", name, *width)};
  return {};
}

// Python's text[:stop]; a negative stop counts from the end.
std::string python_prefix(std::string_view text, std::int64_t stop) {
  if (stop < 0)
    stop = std::max<std::int64_t>(0, static_cast<std::int64_t>(text_length(text)) + stop);
  return std::string(text_prefix(text, static_cast<std::size_t>(stop)));
}

class TableText {
 public:
  TableText(const KeyAverages& table, const TableOptions& options,
            std::vector<const KeyAverage*> rows)
      : table_(table), options_(options), rows_(std::move(rows)) {}

  std::string run() {
    if (rows_.empty()) return "";
    replace_control_characters();
    read_names();
    inspect();
    add_columns();
    write_head();
    for (const KeyAverage* row : shown_rows(rows_, options_)) write_row(*row);
    write_foot();
    return std::move(out_);
  }

 private:
  // A row with control characters or line breaks is replaced by a cleaned copy. (torch prints such
  // texts unchanged.)
  void replace_control_characters() {
    const auto acts = [](const std::string& text) { return one_line(text) != text; };
    for (const KeyAverage*& row : rows_) {
      if (!acts(row->name) && !acts(row->overload_name) && !acts(row->input_shapes) &&
          std::none_of(row->stack.begin(), row->stack.end(), acts))
        continue;
      KeyAverage& copy = cleaned_rows_.emplace_back(*row);
      for (std::string* text : {&copy.name, &copy.overload_name, &copy.input_shapes})
        *text = one_line(*text);
      for (std::string& frame : copy.stack) frame = one_line(frame);
      row = &copy;
    }
  }

  // Readable names of device work, if its names are known. Rows are grouped by raw name, so several
  // can have the same readable name: these are numbered.
  void read_names() {
    if (!options_.readable_names) return;
    std::unordered_map<std::string, int> seen;
    for (const KeyAverage* row : rows_) {
      if (!row->on_device || row->is_annotation) continue;
      const names::KernelName name = names::parse_kernel_name(row->name);
      if (!name.known()) continue;
      const int number = ++seen[name.text];
      readable_[row] = number == 1 ? name.text : fmt::format("{} #{}", name.text, number);
    }
  }

  const std::string& name_of(const KeyAverage& row) const {
    const auto found = readable_.find(&row);
    return found == readable_.end() ? row.name : found->second;
  }

  void inspect() {
    std::size_t longest_name = 0, longest_shapes = 0, longest_frame = 0;
    std::uint64_t least_flops = 0;
    for (const KeyAverage* row : rows_) {
      has_device_time_ |= row->self_device_time_total_us > 0;
      has_device_memory_ |= row->self_device_memory_bytes > 0;
      has_overloads_ |= !row->overload_name.empty();
      has_shapes_ |= !row->input_shapes.empty() && row->input_shapes != "[]";
      has_stacks_ |= !row->stack.empty();
      longest_name = std::max(longest_name, text_length(name_of(*row)));
      longest_shapes = std::max(longest_shapes, text_length(row->input_shapes));
      for (const std::string& frame : row->stack)
        longest_frame = std::max(longest_frame, text_length(frame));
      if (row->flops > 0 && (least_flops == 0 || row->flops < least_flops))
        least_flops = row->flops;
      self_cpu_us_ += row->self_cpu_time_total_us;
      if (row->on_device && !row->is_annotation) self_device_us_ += row->self_device_time_total_us;
    }
    if (table_.style == TableStyle::kLanescope) {
      for (const KeyAverage* row : rows_) has_device_time_ |= row->device_time_total_us > 0;
    }
    has_device_time_ = has_device_time_ && !table_.device.empty();
    name_width_ = limit(longest_name + 4, options_.max_name_column_width);
    shapes_width_ = limit(longest_shapes + 4, options_.max_shapes_column_width);
    source_width_ = limit(longest_frame + 4, options_.max_src_column_width);
    device_ = table_.device;
    std::transform(device_.begin(), device_.end(), device_.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    scale_flops(least_flops);
  }

  static std::size_t limit(std::size_t width, std::optional<int> most) {
    return most ? std::min(width, static_cast<std::size_t>(*most)) : width;
  }

  void scale_flops(std::uint64_t least) {
    with_flops_ = table_.with_flops && least > 0;
    if (!with_flops_) return;
    constexpr std::array<const char*, 6> kNames{"FLOPs",  "KFLOPs", "MFLOPs",
                                                "GFLOPs", "TFLOPs", "PFLOPs"};
    const double thousands =
        std::max(0.0, std::min(std::log10(static_cast<double>(least)) / 3, 5.0));
    flops_scale_ = std::pow(10.0, std::floor(thousands) * -3.0);
    flops_name_ = kNames[static_cast<std::size_t>(thousands)];
  }

  void column(std::string header, std::size_t width, bool left = false) {
    columns_.push_back({std::move(header), width, left});
  }

  // torch heads "Source Location" before FLOPs but writes the values the other way round;
  // kLanescope uses the right order.
  void add_columns() {
    column("Name", name_width_);
    if (has_overloads_) column("Overload Name", name_width_);
    for (const char* header :
         {"Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"})
      column(header, kColumnWidth);
    if (has_device_time_) {
      column("Self " + device_, kColumnWidth);
      column("Self " + device_ + " %", kColumnWidth);
      column(device_ + " total", kColumnWidth);
      column(device_ + " time avg", kColumnWidth);
    }
    if (table_.profile_memory) {
      column("CPU Mem", kColumnWidth);
      column("Self CPU Mem", kColumnWidth);
      if (has_device_memory_ && !device_.empty()) {
        column(device_ + " Mem", kColumnWidth);
        column("Self " + device_ + " Mem", kColumnWidth);
      }
    }
    column("# of Calls", kColumnWidth);
    if (has_shapes_) column("Input Shapes", shapes_width_);
    const bool flops_first = table_.style == TableStyle::kLanescope;
    if (with_flops_ && flops_first) column(std::string("Total ") + flops_name_, kColumnWidth);
    if (has_stacks_) column("Source Location", source_width_, true);
    if (with_flops_ && !flops_first) column(std::string("Total ") + flops_name_, kColumnWidth);
  }

  void line(std::string_view text) { out_.append(text).append(1, '\n'); }

  std::string dashes() const {
    std::string text;
    for (const Column& each : columns_) text.append(each.width, '-').append("  ");
    return text;
  }

  void cells(const std::vector<std::string>& values) {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      out_ += columns_[i].left ? pad_right(values[i], columns_[i].width)
                               : pad_left(values[i], columns_[i].width);
      out_ += "  ";
    }
    out_ += '\n';
  }

  void write_head() {
    std::size_t width = 0;
    for (const Column& each : columns_) width += each.width + 2;
    const std::string rule(width - 2, '=');
    if (options_.header) {
      line(rule);
      line(*options_.header);
    }
    if (options_.top_level_events_only) {
      line(rule);
      line("This report only display top-level ops statistics");
    }
    line(dashes());
    std::vector<std::string> headers;
    for (const Column& each : columns_) headers.push_back(each.header);
    cells(headers);
    line(dashes());
  }

  std::string time(double us) const {
    switch (options_.time_unit) {
      case TimeUnit::kSeconds:
        return fmt::format("{:.3f}s", us / (1000.0 * 1000.0));
      case TimeUnit::kMilliseconds:
        return fmt::format("{:.3f}ms", us / 1000.0);
      case TimeUnit::kMicroseconds:
        return fmt::format("{:.3f}us", us);
      case TimeUnit::kAuto:
        break;
    }
    return format_time_us(us);
  }

  std::string name_cell(std::string_view name) const {
    const auto most = options_.max_name_column_width;
    if (most && static_cast<std::int64_t>(text_length(name)) >= *most - 3)
      return python_prefix(name, *most - 3) + "...";
    return std::string(name);
  }

  std::string source_cell(std::string_view frame) const {
    if (text_length(frame) <= source_width_) return std::string(frame);
    const std::string_view tail = text_suffix(frame, source_width_);
    return text_length(tail) > 3 ? "..." + std::string(text_suffix(tail, source_width_ - 3))
                                 : std::string(tail);
  }

  // Calls inside calls of the same row would give a share above 100 %.
  double cpu_share_us(const KeyAverage& row) const {
    return table_.style == TableStyle::kTorch ? row.cpu_time_total_us
                                              : static_cast<double>(row.cpu_time_union_ns) / 1000.0;
  }

  void write_row(const KeyAverage& row) {
    std::vector<std::string> values{name_cell(name_of(row))};
    if (has_overloads_) values.push_back(name_cell(row.overload_name));
    values.push_back(format_percent(row.self_cpu_time_total_us, self_cpu_us_));
    values.push_back(time(row.self_cpu_time_total_us));
    values.push_back(row.is_async ? "0" : format_percent(cpu_share_us(row), self_cpu_us_));
    values.push_back(time(row.cpu_time_total_us));
    values.push_back(time(average_us(row.cpu_time_total_us, row)));
    if (has_device_time_) add_device_cells(row, values);
    if (table_.profile_memory) {
      values.push_back(format_bytes(row.cpu_memory_bytes));
      values.push_back(format_bytes(row.self_cpu_memory_bytes));
      if (has_device_memory_ && !device_.empty()) {
        values.push_back(format_bytes(row.device_memory_bytes));
        values.push_back(format_bytes(row.self_device_memory_bytes));
      }
    }
    values.push_back(std::to_string(row.count));
    if (has_shapes_) values.emplace_back(text_prefix(row.input_shapes, shapes_width_));
    if (with_flops_)
      values.push_back(row.flops == 0
                           ? "--"
                           : fmt::format("{:8.3f}", static_cast<double>(row.flops) * flops_scale_));
    if (has_stacks_) values.push_back(row.stack.empty() ? "" : source_cell(row.stack.front()));
    cells(values);
    if (has_stacks_) write_more_frames(row);
  }

  // A bar over kernels is wall time, gaps included, and no share of device work: kLanescope leaves
  // those two cells empty.
  void add_device_cells(const KeyAverage& row, std::vector<std::string>& values) const {
    if (table_.style == TableStyle::kLanescope && row.on_device && row.is_annotation) {
      values.insert(values.end(), {"-", "-"});
    } else {
      values.push_back(time(row.self_device_time_total_us));
      values.push_back(format_percent(row.self_device_time_total_us, self_device_us_));
    }
    values.push_back(time(row.device_time_total_us));
    values.push_back(time(average_us(row.device_time_total_us, row)));
  }

  // One line per frame, in the last column whatever that is, then an empty line.
  void write_more_frames(const KeyAverage& row) {
    std::vector<std::string> values(columns_.size());
    for (std::size_t i = 1; i < row.stack.size(); ++i) {
      values.back() = source_cell(row.stack[i]);
      cells(values);
    }
    values.back().clear();
    cells(values);
  }

  void write_foot() {
    line(dashes());
    line("Self CPU time total: " + time(self_cpu_us_));
    if (has_device_time_) line("Self " + device_ + " time total: " + time(self_device_us_));
    if (table_.style == TableStyle::kLanescope) write_notes();
    if (table_.style == TableStyle::kLanescope && !readable_.empty())
      line("Kernel names are readable names; --names raw shows the raw ones");
  }

  // The period that contains all device work of the table: the window, extended if work runs on.
  std::string busy_whole() const {
    const std::string window = time(static_cast<double>(table_.window_ns) / 1000.0);
    std::string text = fmt::format("the {} window", window);
    if (table_.device_window_ns > table_.window_ns)
      text = fmt::format("{} (the {} window, and the work after it)",
                         time(static_cast<double>(table_.device_window_ns) / 1000.0), window);
    return table_.device_count > 1 ? fmt::format("{} times {}", table_.device_count, text) : text;
  }

  void write_notes() {
    const analysis::TorchEventsNotes& notes = table_.corrections;
    if (has_device_time_ && table_.window_ns > 0) {
      const auto busy_us = static_cast<double>(table_.device_busy_ns) / 1000.0;
      const auto whole_us =
          static_cast<double>(table_.device_window_ns) / 1000.0 * table_.device_count;
      line(fmt::format("{} busy: {} of {} ({}), overlapping work counted once", device_,
                       time(busy_us), busy_whole(), format_percent(busy_us, whole_us)));
    }
    std::vector<std::string> lines;
    if (notes.unlaunched_count > 0)
      lines.push_back(
          fmt::format("left out: {} device slices ({}) without a launch call in the trace, such as "
                      "work of the warm-up",
                      notes.unlaunched_count, format_time_ns(notes.unlaunched_ns)));
    if (notes.before_first_step_count > 0)
      lines.push_back(fmt::format("left out: {} device slices ({}) launched before the first step",
                                  notes.before_first_step_count,
                                  format_time_ns(notes.before_first_step_ns)));
    if (notes.overhead_claim_count > 0)
      lines.push_back(
          fmt::format("counted once: {} device slices ({}) that torch's table has a second time, "
                      "under the profiler's own overhead rows",
                      notes.overhead_claim_count, format_time_ns(notes.overhead_claim_ns)));
    if (table_.annotation_span_ns > 0)
      lines.push_back(fmt::format(
          "annotation rows on the device show the work inside them ({}), not the length of their "
          "bars ({}), and no percentage",
          format_time_ns(table_.annotation_busy_ns), format_time_ns(table_.annotation_span_ns)));
    if (notes.python_frame_count > 0)
      lines.push_back(
          fmt::format("{} Python frames are not rows of this table", notes.python_frame_count));
    if (notes.other_thread_memory_count > 0)
      lines.push_back(fmt::format(
          "{} memory records count only for operators of their own thread; torch counts "
          "them for operators of every thread",
          notes.other_thread_memory_count));
    if (lines.empty()) return;
    line("Differs from torch's table (--style torch):");
    for (const std::string& each : lines) line("  * " + each);
  }

  struct Column {
    std::string header;
    std::size_t width;
    bool left;
  };
  const KeyAverages& table_;
  const TableOptions& options_;
  std::vector<const KeyAverage*> rows_;
  std::deque<KeyAverage> cleaned_rows_;
  std::unordered_map<const KeyAverage*, std::string> readable_;
  std::string out_;
  std::vector<Column> columns_;
  bool has_device_time_ = false, has_device_memory_ = false, has_overloads_ = false,
       has_shapes_ = false, has_stacks_ = false;
  bool with_flops_ = false;
  std::size_t name_width_ = 0, shapes_width_ = 0, source_width_ = 0;
  double self_cpu_us_ = 0, self_device_us_ = 0, flops_scale_ = 1;
  std::string device_;
  const char* flops_name_ = "";
};

}  // namespace

Result<TimeUnit> parse_time_unit(std::string_view text) {
  if (text == "s") return TimeUnit::kSeconds;
  if (text == "ms") return TimeUnit::kMilliseconds;
  if (text == "us") return TimeUnit::kMicroseconds;
  return Error{Errc::kInvalidArgument,
               fmt::format("unknown time unit '{}'; one of: s, ms, us", text)};
}

Result<std::string> key_averages_text(const KeyAverages& table, const TableOptions& options) {
  LANESCOPE_TRY_VOID(check_widths(options));
  LANESCOPE_TRY(auto rows, sorted_rows(table, options.sort_by));
  return TableText(table, options, std::move(rows)).run();
}

}  // namespace lanescope::report
