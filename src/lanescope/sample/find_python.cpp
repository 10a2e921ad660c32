#include "lanescope/sample/find_python.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <optional>
#include <vector>

namespace lanescope::sample {
namespace {

constexpr std::size_t kMostSymbolBytes = 256 << 20, kMostSections = 4096, kMostMaps = 1 << 20;

struct MappedFile {
  std::string path;
  std::uint64_t start = 0;  // where the file's first byte is
};

class ElfFile {
 public:
  explicit ElfFile(const std::string& path) : file_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~ElfFile() {
    if (file_ >= 0) close(file_);
  }
  ElfFile(const ElfFile&) = delete;
  ElfFile& operator=(const ElfFile&) = delete;

  bool read_headers() {
    if (file_ < 0 || !read(0, &header_, sizeof header_) ||
        std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0 ||
        header_.e_ident[EI_CLASS] != ELFCLASS64 || header_.e_shnum > kMostSections ||
        header_.e_phnum > kMostSections || header_.e_shentsize != sizeof(Elf64_Shdr) ||
        header_.e_phentsize != sizeof(Elf64_Phdr))
      return false;
    sections_.resize(header_.e_shnum);
    segments_.resize(header_.e_phnum);
    return read(header_.e_shoff, sections_.data(), sections_.size() * sizeof(Elf64_Shdr)) &&
           read(header_.e_phoff, segments_.data(), segments_.size() * sizeof(Elf64_Phdr));
  }

  // The address that a symbol has in the file.
  std::optional<std::uint64_t> find(std::string_view wanted) {
    for (const std::uint32_t type : {SHT_DYNSYM, SHT_SYMTAB})
      for (const Elf64_Shdr& section : sections_) {
        if (section.sh_type != type || section.sh_link >= sections_.size()) continue;
        if (const auto found = find_in(section, sections_[section.sh_link], wanted)) return found;
      }
    return std::nullopt;
  }

  // Of a file whose first byte is mapped at `start`: what is added to addresses of the file.
  std::uint64_t bias(std::uint64_t start) const {
    for (const Elf64_Phdr& segment : segments_)
      if (segment.p_type == PT_LOAD)
        return start - (segment.p_vaddr - segment.p_offset);  // the first one
    return start;
  }

 private:
  bool read(std::uint64_t offset, void* to, std::size_t size) const {
    return offset <= INT64_MAX &&
           pread(file_, to, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
  }
  std::optional<std::uint64_t> find_in(const Elf64_Shdr& symbols, const Elf64_Shdr& names,
                                       std::string_view wanted) {
    if (symbols.sh_size > kMostSymbolBytes || names.sh_size > kMostSymbolBytes) return std::nullopt;
    std::vector<Elf64_Sym> list(symbols.sh_size / sizeof(Elf64_Sym));
    std::string texts(names.sh_size, '\0');
    if (!read(symbols.sh_offset, list.data(), list.size() * sizeof(Elf64_Sym)) ||
        !read(names.sh_offset, texts.data(), texts.size()))
      return std::nullopt;
    for (const Elf64_Sym& symbol : list)
      if (symbol.st_shndx != SHN_UNDEF && symbol.st_name < texts.size() &&
          std::string_view(texts).substr(symbol.st_name).starts_with(wanted) &&
          symbol.st_name + wanted.size() < texts.size() &&
          texts[symbol.st_name + wanted.size()] == '\0')
        return symbol.st_value;
    return std::nullopt;
  }

  int file_;
  Elf64_Ehdr header_{};
  std::vector<Elf64_Shdr> sections_;
  std::vector<Elf64_Phdr> segments_;
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
