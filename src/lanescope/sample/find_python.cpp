#include "lanescope/sample/find_python.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <vector>

#include "lanescope/sample/elf_file.h"

namespace lanescope::sample {
namespace {

constexpr std::size_t kMostMaps = 1 << 20;

struct MappedFile {
  std::string path;
  std::uint64_t start = 0;  // where the file's first byte is
};

// Mapped files that may hold an interpreter: libpython first, then the program.
Result<std::vector<MappedFile>> candidates(pid_t pid) {
  std::ifstream maps(fmt::format("/proc/{}/maps", pid));
  if (!maps) {
    const int failed = errno;
    return Error{
        Errc::kUnavailable,
        fmt::format("expected to read /proc/{}/maps, found: {}; {}", pid, std::strerror(failed),
                    advice_on(failed == ENOENT ? ESRCH : failed, pid))};
  }
  char exe[4096];
  const ssize_t size = readlink(fmt::format("/proc/{}/exe", pid).c_str(), exe, sizeof exe);
  const std::string program(exe, size > 0 ? static_cast<std::size_t>(size) : 0);
  std::vector<MappedFile> libraries, programs;
  std::string line;
  for (std::size_t lines = 0; lines < kMostMaps && std::getline(maps, line); ++lines) {
    // "start-end rwxp offset device inode   path"
    std::uint64_t start = 0, offset = 0;
    char permissions[8] = "";
    int path_at = 0;
    if (std::sscanf(line.c_str(), "%lx-%*x %7s %lx %*s %*s %n", &start, permissions, &offset,
                    &path_at) < 3 ||
        path_at == 0 || offset != 0 || static_cast<std::size_t>(path_at) >= line.size())
      continue;
    const std::string path = line.substr(static_cast<std::size_t>(path_at));
    const std::string_view name = std::string_view(path).substr(path.rfind('/') + 1);
    const auto is_known = [&](const std::vector<MappedFile>& list) {
      return std::any_of(list.begin(), list.end(),
                         [&](const MappedFile& file) { return file.path == path; });
    };
    if (name.starts_with("libpython3") && !is_known(libraries)) libraries.push_back({path, start});
    if (path == program && !is_known(programs)) programs.push_back({path, start});
  }
  libraries.insert(libraries.end(), programs.begin(), programs.end());
  return libraries;
}

}  // namespace

std::uint32_t version_in_name(std::string_view path) {
  const std::size_t at = path.rfind("python3.");
  if (at == std::string_view::npos) return 0;
  const std::string_view number = path.substr(at + 8);
  std::uint32_t minor = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), minor);
  if (error != std::errc() || end == number.data() || minor > 99) return 0;
  return 0x03000000u | minor << 16;
}

std::string advice_on(int refusal, pid_t pid) {
  if (refusal == ESRCH)
    return fmt::format("there is no process {}; `ps` lists those that run", pid);
  return "reading another process needs the right to trace it: run as its user or as root; if "
         "/proc/sys/kernel/yama/ptrace_scope is 1 or more, as root, or set it to 0; in a container "
         "start that with --cap-add SYS_PTRACE";
}

Result<FoundPython> find_python(pid_t pid, RunningProcess& memory) {
  LANESCOPE_TRY(const std::vector<MappedFile> files, candidates(pid));
  for (const MappedFile& file : files) {
    // As that process sees it, in its container.
    ElfFile elf(fmt::format("/proc/{}/root{}", pid, file.path));
    if (!elf.read_headers()) continue;
    const auto runtime = elf.find("_PyRuntime");
    if (!runtime) continue;
    const std::uint64_t bias = elf.bias(file.start);
    FoundPython found{*runtime + bias, version_in_name(file.path), file.path};
    std::uint64_t version = 0;
    if (const auto symbol = elf.find("Py_Version");
        symbol && memory.read(*symbol + bias, &version, sizeof version) && version >> 24 == 3)
      found.version_hex = static_cast<std::uint32_t>(version);
    std::uint64_t word = 0;
    if (!memory.read(found.runtime, &word, sizeof word))
      return Error{Errc::kUnavailable,
                   fmt::format("expected to read the memory of process {}, found: {}; {}", pid,
                               std::strerror(memory.refusal()), advice_on(memory.refusal(), pid))};
    return found;
  }
  return Error{Errc::kUnavailable,
               fmt::format("expected a Python program, found no CPython in process {} (neither its "
                           "program nor a libpython has _PyRuntime)",
                           pid)};
}

}  // namespace lanescope::sample
