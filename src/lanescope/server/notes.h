// Notes on a trace, in a file next to it: TRACE.notes.json.
#pragma once
#include <string>
#include <vector>

#include "lanescope/server/answers.h"
#include "lanescope/server/request.h"

namespace lanescope::server {

// {"notes": [...]}; without a file, none. kCorruptInput: a file of that name that holds no notes.
Answer read_notes(const std::string& trace_path);
// Replaces the file at once when the new one is complete; without notes, removes it. If a file of
// that name holds no notes, it stays, and this is an error. kIo.
Answer write_notes(const std::string& trace_path, const std::vector<Note>& notes);

}  // namespace lanescope::server
