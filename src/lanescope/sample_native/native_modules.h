// The programs and libraries that a process has mapped, and the names of their functions.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "lanescope/sample/elf_file.h"

namespace lanescope::sample_native {

// "aten::native::..." of "libtorch_cpu.so".
struct NativeFunction {
  std::string name;     // demangled, without its parameters; empty: no symbol has this address
  std::string library;  // the file's name; empty: no file is mapped there
  bool is_interpreter = false;  // the loop of CPython that runs a Python function
  bool operator==(const NativeFunction&) const = default;
};

// "function [library]", "[library]", "[no file]".
std::string text_of(const NativeFunction& function);

// A mangled name as people read it: without parameters, at most 256 bytes.
std::string readable_name(std::string_view mangled);

class NativeModules {
 public:
  struct Module {
    std::string path;                  // as the process sees it
    std::string open_path;             // as we can open it, also when the process is in a container
    std::uint64_t start = 0, end = 0;  // all of its mappings
    std::uint64_t bias = 0;            // added to the file's addresses
    bool has_names = false;
    sample::FunctionNames names;
  };

  explicit NativeModules(pid_t pid) : pid_(pid) {}
  // Reads again which files are mapped. False: this cannot be read, or is the same as before.
  bool refresh();
  const std::vector<std::unique_ptr<Module>>& modules() const { return modules_; }
  // The end of the mapping that holds the address, such as the top of a stack; 0: none.
  std::uint64_t end_of_mapping(std::uint64_t address) const;
  // The function at an address. `is_return`: the address follows a call; returns the function with that call.
  // Reads a module's symbols at its first address. Remembers 65,536 addresses, then starts anew.
  std::uint32_t function_at(std::uint64_t address, bool is_return);
  // A function keeps its number.
  const NativeFunction& function(std::uint32_t number) const { return functions_[number]; }

 private:
  struct Mapping {
    std::uint64_t start = 0, end = 0;
    bool operator==(const Mapping&) const = default;
  };
  Module* module_at(std::uint64_t address);
  NativeFunction find(std::uint64_t address);

  pid_t pid_;
  std::vector<Mapping> mappings_;
  std::vector<std::unique_ptr<Module>> modules_;  // by start
  std::unordered_map<std::uint64_t, std::uint32_t> known_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<NativeFunction> functions_;
};

}  // namespace lanescope::sample_native
