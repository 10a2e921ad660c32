// Notes on a trace, in a file next to it: TRACE.notes.json.
#pragma once
#include <string>
#include <vector>

#include "lanescope/server/answers.h"
#include "lanescope/server/request.h"

namespace lanescope::server {

// {"notes": [...]}; the list is empty if there is no file. kCorruptInput: the file is not a file of notes.
Answer read_notes(const std::string& trace_path);
// Replaces the file in one step when the new one is complete. If `notes` is empty, removes the file. If
// the existing file is not a file of notes, leaves it and returns an error. kIo.
Answer write_notes(const std::string& trace_path, const std::vector<Note>& notes);

}  // namespace lanescope::server
