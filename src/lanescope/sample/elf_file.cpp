#include "lanescope/sample/elf_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace lanescope::sample {
namespace {

constexpr std::size_t kMostSymbolBytes = 256 << 20, kMostSections = 4096;

std::string_view text_at(const std::string& texts, std::size_t at) {
  if (at >= texts.size()) return {};
  const std::string_view rest = std::string_view(texts).substr(at);
  const std::size_t end = rest.find('\0');
  return end == std::string_view::npos ? std::string_view() : rest.substr(0, end);
}

}  // namespace

std::string_view FunctionNames::at(std::uint64_t address) const {
  auto found = std::upper_bound(
      functions_.begin(), functions_.end(), address,
      [](std::uint64_t at, const Function& function) { return at < function.begin; });
  if (found == functions_.begin()) return {};
  --found;
  return address < found->end ? found->name : std::string_view();
}

ElfFile::ElfFile(const std::string& path) : file_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}

ElfFile::~ElfFile() {
  if (file_ >= 0) close(file_);
}

bool ElfFile::read(std::uint64_t offset, void* to, std::size_t size) const {
  return offset <= INT64_MAX &&
         pread(file_, to, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
}

bool ElfFile::read_headers() {
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

std::optional<ElfFile::Table> ElfFile::read_table(const Elf64_Shdr& symbols) const {
  if (symbols.sh_link >= sections_.size()) return std::nullopt;
  const Elf64_Shdr& names = sections_[symbols.sh_link];
  if (symbols.sh_size > kMostSymbolBytes || names.sh_size > kMostSymbolBytes) return std::nullopt;
  Table table{std::vector<Elf64_Sym>(symbols.sh_size / sizeof(Elf64_Sym)),
              std::string(names.sh_size, '\0')};
  if (!read(symbols.sh_offset, table.symbols.data(), table.symbols.size() * sizeof(Elf64_Sym)) ||
      !read(names.sh_offset, table.texts.data(), table.texts.size()))
    return std::nullopt;
  return table;
}

std::optional<std::uint64_t> ElfFile::find(std::string_view wanted) {
  for (const std::uint32_t type : {SHT_DYNSYM, SHT_SYMTAB})
    for (const Elf64_Shdr& section : sections_) {
      if (section.sh_type != type) continue;
      const auto table = read_table(section);
      if (!table) continue;
      for (const Elf64_Sym& symbol : table->symbols)
        if (symbol.st_shndx != SHN_UNDEF && text_at(table->texts, symbol.st_name) == wanted)
          return symbol.st_value;
    }
  return std::nullopt;
}

FunctionNames ElfFile::functions() {
  FunctionNames found;
  found.texts_.reserve(sections_.size());  // names point into them
  for (const Elf64_Shdr& section : sections_) {
    if (section.sh_type != SHT_DYNSYM && section.sh_type != SHT_SYMTAB) continue;
    auto table = read_table(section);
    if (!table) continue;
    const std::string& texts = found.texts_.emplace_back(std::move(table->texts));
    for (const Elf64_Sym& symbol : table->symbols) {
      const unsigned type = ELF64_ST_TYPE(symbol.st_info);
      if (symbol.st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_GNU_IFUNC)) continue;
      const std::string_view name = text_at(texts, symbol.st_name);
      if (!name.empty() && symbol.st_size > 0 && symbol.st_value <= UINT64_MAX - symbol.st_size)
        found.functions_.push_back({symbol.st_value, symbol.st_value + symbol.st_size, name});
    }
  }
  std::sort(found.functions_.begin(), found.functions_.end(),
            [](const FunctionNames::Function& a, const FunctionNames::Function& b) {
              return a.begin != b.begin ? a.begin < b.begin : a.name < b.name;
            });
  return found;
}

std::uint64_t ElfFile::bias(std::uint64_t start) const {
  for (const Elf64_Phdr& segment : segments_)
    if (segment.p_type == PT_LOAD)
      return start - (segment.p_vaddr - segment.p_offset);  // the first one
  return start;
}

}  // namespace lanescope::sample
