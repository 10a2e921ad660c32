#include "lanescope/report/dispatch_tree_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "lanescope/names/kernel_name.h"
#include "lanescope/report/json_writer.h"
#include "lanescope/report/text_format.h"

namespace lanescope::report {
namespace {

using analysis::DispatchNode;
using analysis::DispatchTree;

constexpr std::size_t kCell = 11;  // wide enough for 999.999us and 99999.999s
constexpr std::size_t kCells = 5;
constexpr std::size_t kDeepestIndent =
    24;  // levels; deeper ones are not indented further, to leave room for names

std::uint64_t rows_of(const DispatchNode& node) {
  std::uint64_t rows = 1;
  for (const DispatchNode& child : node.children) rows += rows_of(child);
  return rows;
}

bool is_folded(const DispatchNode& node) {
  return node.count > 1 || std::any_of(node.children.begin(), node.children.end(), is_folded);
}

// What a kernel's name says, then the name itself.
std::string shown_name(const std::string& raw_name, bool device_work) {
  if (!device_work) return one_line(raw_name);
  const names::KernelName name = names::parse_kernel_name(raw_name);
  return one_line(name.known() && name.text != raw_name ? name.text + "  " + raw_name : raw_name);
}

class TreeText {
 public:
  TreeText(const DispatchTree& tree, const TreeTextOptions& options)
      : tree_(tree),
        options_(options),
        width_(static_cast<std::size_t>(std::max(80, options.width))) {}

  std::string run() {
    if (tree_.threads.empty() && tree_.unlaunched.empty())
      return "Nothing to show: no operators, annotations or API calls.\n";
    for (const auto& thread : tree_.threads)
      for (const DispatchNode& root : thread.roots) collect_streams(root);
    bool folded = false;
    for (const auto& thread : tree_.threads) {
      for (const DispatchNode& root : thread.roots) folded |= is_folded(root);
      write_thread(thread);
    }
    if (hidden_rows_ > 0)
      line(fmt::format("... {} more rows: choose with --step, --op or --depth",
                       format_count(hidden_rows_)));
    write_unlaunched();
    write_legend(folded);
    return std::move(out_);
  }

 private:
  void line(std::string_view text) { out_.append(text).append(1, '\n'); }

  void write_thread(const analysis::DispatchThread& thread) {
    if (options_.max_rows >= 0 && rows_ >= static_cast<std::uint64_t>(options_.max_rows)) {
      for (const DispatchNode& root : thread.roots) hidden_rows_ += rows_of(root);
      return;
    }
    if (!out_.empty()) out_ += '\n';
    line(shorten(one_line(thread.name), width_));
    std::string head;
    for (const char* title : {"start", "total", "self", "device", "gap"})
      head += pad_left(title, kCell);
    line(head + "  name");
    for (const DispatchNode& root : thread.roots) write_node(root, 0);
  }

  static std::string cell(std::optional<std::int64_t> ns) {
    return pad_left(ns ? format_time_ns(*ns) : "-", kCell);
  }

  // Numbers of device work are only in the device column, so that the other columns add up.
  void write_node(const DispatchNode& node, std::size_t depth) {
    if (options_.max_rows >= 0 && rows_ >= static_cast<std::uint64_t>(options_.max_rows)) {
      hidden_rows_ += rows_of(node);
      return;
    }
    ++rows_;
    const bool work = is_device_work(node.kind);
    std::string text = cell(node.start_ns);
    text +=
        work ? cell(std::nullopt) + cell(std::nullopt) : cell(node.total_ns) + cell(node.self_ns);
    text += node.device_ns == 0 && !work ? cell(std::nullopt) : cell(node.device_ns);
    text += cell(work ? node.median_queue_ns : node.median_gap_ns) + "  " +
            std::string(2 * std::min(depth, kDeepestIndent), ' ');
    const std::string tail = tail_of(node);
    const std::size_t used = text_length(text) + text_length(tail);
    const std::string name = shorten(shown_name(node.name, work),
                                     std::max<std::size_t>(20, width_ > used ? width_ - used : 0));
    line(text + colored(name, node.kind) + tail);
    for (const DispatchNode& child : node.children) write_node(child, depth + 1);
    if (node.hidden_count > 0)
      line(std::string(kCell * kCells + 4 + 2 * std::min(depth, kDeepestIndent), ' ') +
           fmt::format("... {} deeper", format_count(node.hidden_count)));
  }

  std::string tail_of(const DispatchNode& node) const {
    std::string tail;
    if (node.stream && streams_.size() > 1) tail += fmt::format("  stream {}", *node.stream);
    if (node.count > 1)
      tail += fmt::format("  x{}, median {}", format_count(node.count),
                          format_time_ns(node.median_total_ns));
    return tail;
  }

  void collect_streams(const DispatchNode& node) {
    if (node.stream) streams_.insert(*node.stream);
    for (const DispatchNode& child : node.children) collect_streams(child);
  }

  std::string colored(const std::string& name, CategoryKind kind) const {
    if (!options_.color) return name;
    const char* code = is_device_work(kind)                    ? "32"  // green
                       : is_api_call(kind)                     ? "2"   // dim
                       : kind == CategoryKind::kUserAnnotation ? "36"  // cyan
                       : kind == CategoryKind::kPythonFunction ? "33"  // yellow
                                                               : "1";  // bold
    return fmt::format("\033[{}m{}\033[0m", code, name);
  }

  void write_unlaunched() {
    if (tree_.unlaunched.empty()) return;
    if (!out_.empty()) out_ += '\n';
    line(
        "Device work without a launch call in this trace (launched before the window, or the call "
        "was not recorded)");
    std::size_t shown = 0;
    for (const analysis::UnlaunchedWork& work : tree_.unlaunched) {
      if (shown++ == 10) {
        line(fmt::format("{}  ... {} more names", std::string(kCell * 4, ' '),
                         format_count(tree_.unlaunched.size() - 10)));
        return;
      }
      const std::string tail = fmt::format("  x{}", format_count(work.count));
      line(std::string(kCell * 3, ' ') + cell(work.total_ns) + std::string(kCell, ' ') + "  " +
           shorten(shown_name(work.name, true), width_ - kCell * kCells - 2 - tail.size()) + tail);
    }
  }

  void write_legend(bool folded) {
    if (tree_.threads.empty()) return;
    out_ += '\n';
    line("start   since its step began; outside of steps, since the window began");
    line("total   the whole duration; self: total minus the direct children");
    line("device  kernels, copies and memsets launched in it and below, added up");
    line("gap     from the end of the row before it on its level, or from its parent's start;");
    line("        for device work from the start of the call that launched it (the queue delay)");
    if (streams_.size() == 1)
      line(fmt::format("        All device work runs on stream {}.", *streams_.begin()));
    if (folded)
      line(
          "xN      N equal neighbours in one row: start of the first, sums of total, self and "
          "device, median gap");
  }

  const DispatchTree& tree_;
  const TreeTextOptions& options_;
  std::size_t width_;
  std::string out_;
  std::set<std::int64_t> streams_;  // named in the rows when there are several
  std::uint64_t rows_ = 0, hidden_rows_ = 0;
};

void write_json_node(const DispatchNode& node, JsonWriter& json) {
  json.begin_object().text("name", node.name).text("kind", category_kind_name(node.kind));
  if (is_device_work(node.kind)) {
    const names::KernelName name = names::parse_kernel_name(node.name);
    if (name.known()) json.text("readable_name", name.text);
  }
  json.integer("count", node.count).integer("start_ns", node.start_ns);
  json.integer("total_ns", node.total_ns).integer("median_total_ns", node.median_total_ns);
  if (!is_device_work(node.kind)) json.integer("self_ns", node.self_ns);
  json.integer("device_ns", node.device_ns);
  if (node.median_gap_ns) json.integer("median_gap_ns", *node.median_gap_ns);
  if (node.median_queue_ns) json.integer("median_queue_ns", *node.median_queue_ns);
  if (node.stream) json.integer("stream", *node.stream);
  if (node.hidden_count > 0) json.integer("hidden_count", node.hidden_count);
  json.begin_array("children");
  for (const DispatchNode& child : node.children) write_json_node(child, json);
  json.end_array().end_object();
}

}  // namespace

std::string dispatch_tree_text(const DispatchTree& tree, const TreeTextOptions& options) {
  return TreeText(tree, options).run();
}

std::string dispatch_tree_json(const DispatchTree& tree) {
  JsonWriter json("tree");
  json.begin_array("steps");
  for (const std::int64_t step : tree.steps) json.integer({}, step);
  json.end_array().begin_array("threads");
  for (const analysis::DispatchThread& thread : tree.threads) {
    json.begin_object().text("name", thread.name).begin_array("roots");
    for (const DispatchNode& root : thread.roots) write_json_node(root, json);
    json.end_array().end_object();
  }
  json.end_array().begin_array("unlaunched");
  for (const analysis::UnlaunchedWork& work : tree.unlaunched)
    json.begin_object()
        .text("name", work.name)
        .integer("count", work.count)
        .integer("total_ns", work.total_ns)
        .end_object();
  json.end_array();
  return json.take();
}

}  // namespace lanescope::report
