// Symbols and segments of a 64-bit ELF file. The file may be damaged or change: sizes are checked,
// and what cannot be read is absent.
#pragma once
#include <elf.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lanescope::sample {

// The functions of a file, to find the one at an address.
class FunctionNames {
 public:
  // The symbol whose bytes hold the address; empty: none. The nearest symbol before it would often be
  // another function, because most symbols of a stripped file are gone.
  std::string_view at(std::uint64_t address) const;
  std::size_t size() const { return functions_.size(); }

 private:
  friend class ElfFile;
  struct Function {
    std::uint64_t begin = 0, end = 0;
    std::string_view name;
  };
  std::vector<std::string> texts_;
  std::vector<Function> functions_;  // by begin
};

class ElfFile {
 public:
  explicit ElfFile(const std::string& path);
  ~ElfFile();
  ElfFile(const ElfFile&) = delete;
  ElfFile& operator=(const ElfFile&) = delete;

  // Call first. False: no ELF file of 64 bits.
  bool read_headers();
  // The address that a symbol has in the file.
  std::optional<std::uint64_t> find(std::string_view wanted);
  // All functions of .symtab and .dynsym. Reads both tables: 50 MB and 0.2 s for libtorch_cpu.so.
  FunctionNames functions();
  // What to add to addresses of the file if its first byte is mapped at `start`.
  std::uint64_t bias(std::uint64_t start) const;

 private:
  struct Table {
    std::vector<Elf64_Sym> symbols;
    std::string texts;
  };
  bool read(std::uint64_t offset, void* to, std::size_t size) const;
  std::optional<Table> read_table(const Elf64_Shdr& symbols) const;

  int file_;
  Elf64_Ehdr header_{};
  std::vector<Elf64_Shdr> sections_;
  std::vector<Elf64_Phdr> segments_;
};

}  // namespace lanescope::sample
