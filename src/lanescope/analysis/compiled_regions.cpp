// torch 2.1 to 2.13 write these rows, with ids K/M since 2.6. After a graph break, the first
// region calls the rest of the function, which is a region inside a region. Regions next to each
// other are separate calls.
#include "lanescope/analysis/compiled_regions.h"

#include <unordered_set>

namespace lanescope::analysis {
namespace {

constexpr std::string_view kCompileId = "dynamo_data: compile_id=";

CompileLayer layer_of_name(std::string_view name) {
  if (name.starts_with("TorchDynamo Cache Lookup")) return CompileLayer::kCacheLookup;
  if (is_compiled_region(name)) return CompileLayer::kRegion;
  if (name.starts_with("AOTDispatcher Runtime Wrapper Prologue") || name == "Pregraph bytecode")
    return CompileLayer::kPrologue;
  if (name.starts_with("## Call CompiledFxGraph")) return CompileLayer::kGraph;
  if (name.ends_with("(dynamo_timed)") || name.starts_with(kCompileId) || name == "dynamo")
    return CompileLayer::kCompiling;
  return CompileLayer::kNone;
}

std::string_view region_id(std::string_view name) {
  name.remove_prefix(kCompiledRegion.size());
  return name.starts_with(": ") ? name.substr(2) : std::string_view();
}

}  // namespace

CompiledCode find_compiled_code(const Trace& trace, const SliceNesting& nesting) {
  CompiledCode code;
  constexpr std::uint8_t kNotSeen = 255;
  std::vector<std::uint8_t> by_name(trace.strings().size(), kNotSeen);
  std::unordered_set<std::uint32_t> graphs;
  std::string_view announced;  // "dynamo_data" comes before or inside the row that it describes
  code.layer.assign(trace.slices().size(), CompileLayer::kNone);
  for (std::uint32_t i = 0; i < code.layer.size(); ++i) {
    const SliceId id{i}, parent = nesting.parent[i];
    if (nesting.depth[i] == SliceNesting::kNotNested) continue;
    const CompileLayer outer =
        parent == kNone<SliceId> ? CompileLayer::kNone : code.layer[raw(parent)];
    code.layer[i] = outer;
    const StringId name = trace.slices().name[i];
    if (name == kNone<StringId> || !is_front_end(trace.kind(id))) continue;
    std::uint8_t& known = by_name[raw(name)];
    if (known == kNotSeen) known = static_cast<std::uint8_t>(layer_of_name(trace.text(name)));
    const auto own = static_cast<CompileLayer>(known);
    if (own == CompileLayer::kNone) continue;
    const std::string_view text = trace.text(name);
    const std::string_view speaks_of =
        text.starts_with(kCompileId) ? text.substr(kCompileId.size()) : std::string_view();
    if (outer == CompileLayer::kCompiling) {  // work during compiling is a trial run
      if (!code.compiles.empty() && code.compiles.back().id.empty())
        code.compiles.back().id = speaks_of;
      continue;
    }
    code.layer[i] = own;
    if (own == CompileLayer::kGraph && graphs.insert(raw(name)).second) code.graphs.push_back(name);
    if (own == CompileLayer::kRegion) {
      SliceId around = parent;
      while (around != kNone<SliceId> && !is_compiled_region(trace.name(around)))
        around = nesting.parent[raw(around)];
      code.calls.push_back({id, region_id(text), around});
    }
    if (own != CompileLayer::kCompiling) continue;
    if (!speaks_of.empty()) {
      announced = speaks_of;
      continue;
    }
    code.compiles.push_back({id, trace.start_ns(id), trace.end_ns(id), announced});
    announced = {};
  }
  return code;
}

}  // namespace lanescope::analysis
