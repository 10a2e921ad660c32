// The line of an instruction, from the bytes of a code object's table of lines.
#pragma once
#include <cstdint>
#include <string_view>

#include "lanescope/sample/python_layout.h"

namespace lanescope::sample {

// `offset`: bytes from the start of the bytecode to the instruction. Returns 0 if the instruction has no
// line or the table is damaged. Cost: one pass over the table. The formats: CPython's Objects/lnotab_notes.txt (3.9, 3.10) and
// Objects/locations.md (3.11 on).
int line_of(LineTable format, std::string_view table, int first_line, std::uint32_t offset);

}  // namespace lanescope::sample
