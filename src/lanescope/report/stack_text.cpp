#include "lanescope/report/stack_text.h"

#include <algorithm>

#include "lanescope/report/json_writer.h"
#include "lanescope/report/text_format.h"

namespace lanescope::report {

std::string folded_name(std::string_view name) {
  std::string out = one_line(name);
  std::replace(out.begin(), out.end(), ';', '_');
  return out;
}

std::vector<std::uint32_t> stack_of(std::span<const analysis::FlameNode> nodes,
                                    std::uint32_t node) {
  std::vector<std::uint32_t> stack{node};
  while (nodes[stack.back()].parent != stack.back()) stack.push_back(nodes[stack.back()].parent);
  std::reverse(stack.begin(), stack.end());
  return stack;
}

std::string folded_stack(const Trace& trace, std::span<const analysis::FlameNode> nodes,
                         std::uint32_t node) {
  std::string line;
  for (const std::uint32_t at : stack_of(nodes, node)) {
    if (!line.empty()) line += ';';
    line += folded_name(trace.text(nodes[at].function));
  }
  return line;
}

std::string SpeedscopeFrames::head(const Trace& trace) {
  std::string out =
      "{\"$schema\": \"https://www.speedscope.app/file-format-schema.json\",\n"
      "\"exporter\": \"lanescope\", \"shared\": {\"frames\": [\n";
  for (std::size_t i = 0; i < frame_.size(); ++i) {
    if (frame_[i] == kUnused) continue;
    frame_[i] = count_++;
    out.append("{\"name\": \"").append(json_escaped(trace.text(StringId(i)))).append("\"},\n");
  }
  out += "{\"name\": \"\"}\n]},\n";
  return out;
}

}  // namespace lanescope::report
