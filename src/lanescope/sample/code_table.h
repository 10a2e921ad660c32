// The code objects that a StackReader has met: their functions and the lines of their instructions.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lanescope/sample/process_memory.h"
#include "lanescope/sample/python_layout.h"
#include "lanescope/sample/stack_reader.h"

namespace lanescope::sample {

// The fields of a code object's head. Equal heads at one address mean the same code object. Another one that later gets that
// address differs in at least one field: its name, file and first line differ, and the old texts and table are freed only
// after their code object.
struct CodeHead {
  std::uint64_t type = 0, file = 0, name = 0, lines = 0;
  std::int32_t first_line = 0;
  std::uint64_t units = 0;  // of bytecode
  bool operator==(const CodeHead&) const = default;
};

class CodeTable {
 public:
  CodeTable(ProcessMemory& memory, const PythonLayout& layout, std::uint64_t code_type)
      : memory_(memory), layout_(layout), code_type_(code_type) {}

  // A code object at an address; its head was copied to `bytes`, layout.code_bytes() of them.
  CodeHead head_of(const unsigned char* bytes) const;
  // Makes sure that the code object at `code` is known; reads it if it is new or another one.
  // False: it is no code object.
  bool know(std::uint64_t code, const CodeHead& head);
  // The function and line of a known code object at an instruction, as a frame holds it. `skip`:
  // set if the frame has not begun. False: the instruction is not in that code.
  bool frame_at(std::uint64_t code, std::uint64_t instruction, SampledFrame* out, bool* skip);

  const SampledFunction& function(std::uint32_t number) const { return functions_[number]; }
  std::uint32_t generation() const { return generation_; }
  // Forgets everything when there is too much. Call it between samples.
  void keep_bounded();

 private:
  struct Code {
    CodeHead head;
    std::uint32_t function = 0;
    std::string lines;
    std::unordered_map<std::uint32_t, int> line_at;
  };
  bool is_code_type(std::uint64_t type);
  bool read_text(std::uint64_t address, std::string* out);
  bool read_bytes(std::uint64_t address, std::string* out);

  ProcessMemory& memory_;
  const PythonLayout& layout_;
  std::uint64_t code_type_;
  std::unordered_map<std::uint64_t, Code> codes_;
  std::vector<SampledFunction> functions_;
  std::map<std::pair<std::pair<std::string, std::string>, int>, std::uint32_t> numbers_;
  std::uint32_t generation_ = 1;
};

// The bytes at any place, as a number.
template <typename Word>
Word word_at(const unsigned char* bytes, std::size_t at) {
  Word word;
  std::memcpy(&word, bytes + at, sizeof word);
  return word;
}

// Whether a pointer may be one to an object.
constexpr bool is_plausible(std::uint64_t pointer) {
  return pointer >= 4096 && pointer < std::uint64_t{1} << 56 && pointer % 8 == 0;
}

}  // namespace lanescope::sample
