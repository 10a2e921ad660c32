// Notes on a trace, in a file next to it: TRACE.notes.json.
#pragma once
#include <string>
#include <vector>

#include "lanescope/server/answers.h"
#include "lanescope/server/request.h"

namespace lanescope::server {

// {"notes": [...]}; without a file, none. kCorruptInput: a file of that name that holds no notes.
Answer read_notes(const std::string& trace_path);
// Writes the file whole, then takes the old one's place; no notes: removes the file. A file of that
// name that holds no notes stays, and is an error. kIo.
Answer write_notes(const std::string& trace_path, const std::vector<Note>& notes);

}  // namespace lanescope::server
