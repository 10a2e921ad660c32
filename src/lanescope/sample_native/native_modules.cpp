#include "lanescope/sample_native/native_modules.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace lanescope::sample_native {
namespace {

constexpr std::size_t kMostMaps = 1 << 20, kMostKnown = 65'536, kMostNameBytes = 256;

// Where the parameters of "int ns::f<void (int)>(char, int) const" begin.
std::size_t parameters_at(std::string_view name) {
  int depth = 0;
  for (std::size_t at = name.rfind(')'); at != std::string_view::npos && at > 0; --at) {
    if (name[at] == ')') ++depth;
    if (name[at] == '(' && --depth == 0) return at;
  }
  return name.size();
}

}  // namespace

std::string readable_name(std::string_view mangled) {
  std::string name(mangled);
  if (mangled.starts_with("_Z") && mangled.size() <= 4096) {
    int status = 0;
    char* const text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
    if (text) name = text;
    std::free(text);
    // "(anonymous namespace)::f(int)": the last brackets are the parameters, unless nothing precedes.
    const std::size_t at = parameters_at(name);
    if (at > 0 && !std::string_view(name).substr(at).starts_with("(anonymous")) name.resize(at);
  }
  if (name.size() > kMostNameBytes) {
    name.resize(kMostNameBytes - 3);
    name += "...";
  }
  return name;
}

std::string text_of(const NativeFunction& function) {
  if (function.library.empty()) return "[no file]";
  if (function.name.empty()) return fmt::format("[{}]", function.library);
  return fmt::format("{} [{}]", function.name, function.library);
}

bool NativeModules::refresh() {
  std::ifstream maps(fmt::format("/proc/{}/maps", pid_));
  std::vector<Mapping> mappings;
  std::vector<std::unique_ptr<Module>> found;
  std::string line;
  for (std::size_t lines = 0; lines < kMostMaps && std::getline(maps, line); ++lines) {
    // "start-end rwxp offset device inode   path"
    std::uint64_t start = 0, end = 0, offset = 0;
    int path_at = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx %*s %lx %*s %*s %n", &start, &end, &offset, &path_at) <
        3)
      continue;
    mappings.push_back({start, end});
    if (path_at == 0 || static_cast<std::size_t>(path_at) >= line.size()) continue;
    const std::string path = line.substr(static_cast<std::size_t>(path_at));
    if (!found.empty() && found.back()->path == path) {
      found.back()->end = end;
      continue;
    }
    if (offset != 0 || path[0] != '/') continue;
    auto module = std::make_unique<Module>();
    module->path = path;
    module->open_path = fmt::format("/proc/{}/root{}", pid_, path);
    module->start = start;
    module->end = end;
    found.push_back(std::move(module));
  }
  if (mappings.empty() || mappings == mappings_) return false;
  mappings_ = std::move(mappings);
  const auto is_same = [](const auto& a, const auto& b) {
    return a->path == b->path && a->start == b->start && a->end == b->end;
  };
  if (std::equal(found.begin(), found.end(), modules_.begin(), modules_.end(), is_same))
    return false;
  for (auto& module : found) {  // keep what was read
    const auto before = std::find_if(modules_.begin(), modules_.end(),
                                     [&](const auto& old) { return old && is_same(old, module); });
    if (before != modules_.end()) module = std::move(*before);
  }
  modules_ = std::move(found);
  known_.clear();
  return true;
}

std::uint64_t NativeModules::end_of_mapping(std::uint64_t address) const {
  const auto after =
      std::upper_bound(mappings_.begin(), mappings_.end(), address,
                       [](std::uint64_t at, const Mapping& mapping) { return at < mapping.start; });
  if (after == mappings_.begin() || (after - 1)->end <= address) return 0;
  return (after - 1)->end;
}

NativeModules::Module* NativeModules::module_at(std::uint64_t address) {
  const auto after =
      std::upper_bound(modules_.begin(), modules_.end(), address,
                       [](std::uint64_t at, const auto& module) { return at < module->start; });
  if (after == modules_.begin() || (*(after - 1))->end <= address) return nullptr;
  return (after - 1)->get();
}

NativeFunction NativeModules::find(std::uint64_t address) {
  NativeFunction found;
  Module* const module = module_at(address);
  if (!module) return found;
  found.library = module->path.substr(module->path.rfind('/') + 1);
  if (!module->has_names) {
    module->has_names = true;
    sample::ElfFile file(module->open_path);
    if (file.read_headers()) {
      module->bias = file.bias(module->start);
      module->names = file.functions();
    }
  }
  const std::string_view symbol = module->names.at(address - module->bias);
  found.is_interpreter = symbol.starts_with("_PyEval_EvalFrameDefault");
  found.name = readable_name(symbol);
  return found;
}

std::uint32_t NativeModules::function_at(std::uint64_t address, bool is_return) {
  const std::uint64_t inside = is_return && address > 0 ? address - 1 : address;
  if (const auto known = known_.find(inside); known != known_.end()) return known->second;
  if (known_.size() >= kMostKnown) known_.clear();
  NativeFunction function = find(inside);
  const auto [number, is_new] =
      numbers_.try_emplace(text_of(function), static_cast<std::uint32_t>(functions_.size()));
  if (is_new) functions_.push_back(std::move(function));
  known_.emplace(inside, number->second);
  return number->second;
}

}  // namespace lanescope::sample_native
