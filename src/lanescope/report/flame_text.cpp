#include "lanescope/report/flame_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "lanescope/base/sort_rows.h"
#include "lanescope/report/html_escape.h"
#include "lanescope/report/json_writer.h"
#include "lanescope/report/stack_text.h"
#include "lanescope/report/text_format.h"

namespace lanescope::report {
namespace {

using analysis::FlameNode;
using analysis::FlameSource;
using analysis::PythonFlame;

constexpr double kWidth = 1200, kRow = 17, kMargin = 10, kTop = 44, kLetter = 6.6, kNarrowest = 0.1;

std::int64_t shown_weight(const PythonFlame& flame, std::int64_t weight) {
  return flame.source == FlameSource::kSamples ? weight : (weight + 500) / 1000;
}

std::string weight_text(const PythonFlame& flame, std::int64_t weight) {
  const std::string share =
      format_percent(static_cast<double>(weight), static_cast<double>(flame.total));
  return flame.source == FlameSource::kSamples
             ? fmt::format("{} samples, {}", format_count(static_cast<std::uint64_t>(weight)),
                           share)
             : fmt::format("{}, {}", format_time_ns(weight), share);
}

// The callees of each node, widest first; the last list has the roots.
std::vector<std::vector<std::uint32_t>> callees_of(const Trace& trace, const PythonFlame& flame) {
  std::vector<std::vector<std::uint32_t>> out(flame.nodes.size() + 1);
  for (std::uint32_t i = 0; i < flame.nodes.size(); ++i)
    out[flame.nodes[i].parent == i ? flame.nodes.size() : flame.nodes[i].parent].push_back(i);
  for (auto& list : out)
    sort_rows(list.begin(), list.end(), [&](std::uint32_t a, std::uint32_t b) {
      const FlameNode &left = flame.nodes[a], &right = flame.nodes[b];
      if (left.total != right.total) return left.total > right.total;
      return trace.text(left.function) < trace.text(right.function);
    });
  return out;
}

// A warm colour that depends on the name only, so that a function looks alike in two pictures.
std::string colour_of(std::string_view name) {
  std::uint32_t hash = 2166136261u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return fmt::format("hsl({}, {}%, {}%)", 18 + hash % 36, 70 + hash / 64 % 20,
                     62 + hash / 4096 % 12);
}

class FlameSvg {
 public:
  FlameSvg(const Trace& trace, const PythonFlame& flame)
      : trace_(trace), flame_(flame), callees_(callees_of(trace, flame)) {
    depth_.resize(flame.nodes.size());
    for (std::uint32_t i = 0; i < flame.nodes.size(); ++i) {
      depth_[i] = flame.nodes[i].parent == i ? 0 : depth_[flame.nodes[i].parent] + 1;
      if (width_of(flame.nodes[i].total) >= kNarrowest) deepest_ = std::max(deepest_, depth_[i]);
    }
  }

  std::string draw(const std::string& what) {
    height_ = kTop + kRow * (deepest_ + 1) + 30;
    out_ += fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" width=\"{}\" "
        "height=\"{}\" font-family=\"monospace\" font-size=\"11\">\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
        "<text x=\"{}\" y=\"20\" font-size=\"15\">{}</text>\n"
        "<text x=\"{}\" y=\"36\" fill=\"#555\">{}</text>\n",
        kWidth + 2 * kMargin, height_, kWidth + 2 * kMargin, height_, kMargin,
        html_escaped(one_line(what)), kMargin, html_escaped(flame_summary(flame_)));
    draw_all();
    out_ += fmt::format(
        "<text x=\"{}\" y=\"{}\" fill=\"#555\">Callers are below. Point at a box for its "
        "name and share.{}</text>\n</svg>\n",
        kMargin, height_ - 10,
        hidden_ == 0 ? "" : fmt::format(" {} boxes are too narrow to draw.", hidden_));
    return std::move(out_);
  }

 private:
  double width_of(std::int64_t weight) const {
    return flame_.total == 0
               ? 0
               : kWidth * static_cast<double>(weight) / static_cast<double>(flame_.total);
  }

  // Without recursion: a stack of a damaged trace may be deep.
  void draw_all() {
    std::vector<std::pair<std::uint32_t, double>> todo;
    const auto add = [&](const std::vector<std::uint32_t>& list, double x) {
      for (const std::uint32_t node : list) {
        todo.emplace_back(node, x);
        x += width_of(flame_.nodes[node].total);
      }
    };
    add(callees_.back(), kMargin);
    while (!todo.empty()) {
      const auto [node, x] = todo.back();
      todo.pop_back();
      const double width = width_of(flame_.nodes[node].total);
      if (width < kNarrowest) {
        hidden_ += flame_.nodes[node].total != 0;
        continue;
      }
      draw_box(node, x, width);
      add(callees_[node], x);
    }
  }

  void draw_box(std::uint32_t node, double x, double width) {
    const std::string name = one_line(trace_.text(flame_.nodes[node].function));
    const double y = height_ - 30 - kRow * (depth_[node] + 1);
    out_ += fmt::format(
        "<g><title>{} ({})</title><rect x=\"{:.1f}\" y=\"{:.0f}\" width=\"{:.1f}\" "
        "height=\"{:.0f}\" rx=\"1\" fill=\"{}\" stroke=\"#fff\" stroke-width=\"0.5\"/>",
        html_escaped(name), weight_text(flame_, flame_.nodes[node].total), x, y, width, kRow - 1,
        colour_of(name));
    const auto letters = static_cast<std::size_t>(width / kLetter);
    if (letters >= 4)
      out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.0f}\">{}</text>", x + 3, y + 12,
                          html_escaped(shorten(name, letters - 1)));
    out_ += "</g>\n";
  }

  const Trace& trace_;
  const PythonFlame& flame_;
  const std::vector<std::vector<std::uint32_t>> callees_;
  std::vector<std::uint32_t> depth_;
  std::uint32_t deepest_ = 0;
  double height_ = 0;
  std::size_t hidden_ = 0;
  std::string out_;
};

}  // namespace

double largest_share_error(std::uint64_t samples) {
  return std::ceil(500 / std::sqrt(static_cast<double>(samples)) - 1e-9) / 10;
}

std::string flame_summary(const PythonFlame& flame) {
  const auto amount = [&](std::int64_t weight) {
    return flame.source == FlameSource::kSamples ? format_count(static_cast<std::uint64_t>(weight))
                                                 : format_time_ns(weight);
  };
  const std::string of =
      flame.total == flame.available
          ? amount(flame.total)
          : fmt::format("{} of {}", amount(flame.total), amount(flame.available));
  const std::string_view what = flame.source == FlameSource::kSamples ? "samples of Python stacks"
                                : flame.source == FlameSource::kCalls
                                    ? "of Python calls (self time of recorded calls)"
                                    : "of JavaScript stacks (time between samples)";
  std::string text = fmt::format("{} {}", of, what);
  if (!flame.threads.empty())
    text +=
        fmt::format(", {} thread{}", flame.threads.size(), flame.threads.size() == 1 ? "" : "s");
  if (flame.source == FlameSource::kSamples && flame.total > 0)
    text += fmt::format("; shares are estimates, with a standard error of at most {:.1f} %",
                        largest_share_error(static_cast<std::uint64_t>(flame.total)));
  return text;
}

std::string flame_folded(const Trace& trace, const PythonFlame& flame) {
  std::vector<std::string> lines;
  for (std::uint32_t i = 0; i < flame.nodes.size(); ++i) {
    const std::int64_t weight = shown_weight(flame, flame.nodes[i].self);
    if (weight > 0)
      lines.push_back(fmt::format("{} {}\n", folded_stack(trace, flame.nodes, i), weight));
  }
  std::sort(lines.begin(), lines.end());
  std::string out;
  for (const std::string& line : lines) out += line;
  return out;
}

std::string flame_speedscope(const Trace& trace, const PythonFlame& flame) {
  SpeedscopeFrames frames(trace.strings().size());
  for (const FlameNode& node : flame.nodes) frames.add(node.function);
  std::string out = frames.head(trace);
  std::string samples, weights;
  std::int64_t total = 0;
  for (std::uint32_t i = 0; i < flame.nodes.size(); ++i) {
    if (flame.nodes[i].self <= 0) continue;
    std::vector<std::uint32_t> stack;
    for (const std::uint32_t node : stack_of(flame.nodes, i))
      stack.push_back(frames.frame(flame.nodes[node].function));
    samples += fmt::format("{}[{}]", samples.empty() ? "" : ",\n", fmt::join(stack, ", "));
    weights += fmt::format("{}{}", weights.empty() ? "" : ", ", flame.nodes[i].self);
    total += flame.nodes[i].self;
  }
  const bool is_sampled = flame.source == FlameSource::kSamples;
  out += fmt::format(
      "\"profiles\": [{{\"type\": \"sampled\", \"name\": \"{}\", \"unit\": "
      "\"{}\", \"startValue\": 0, \"endValue\": {},\n\"samples\": [\n{}\n],\n"
      "\"weights\": [{}]}}]}}\n",
      json_escaped(flame_summary(flame)), is_sampled ? "none" : "nanoseconds", total, samples,
      weights);
  return out;
}

std::string flame_svg(const Trace& trace, const PythonFlame& flame, const std::string& what) {
  return FlameSvg(trace, flame).draw(what);
}

}  // namespace lanescope::report
