#include "lanescope/server/notes.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace lanescope::server {
namespace {
namespace fs = std::filesystem;

constexpr std::uintmax_t kMostBytes = 4u << 20;

std::string file_of(const std::string& trace_path) { return trace_path + ".notes.json"; }

std::string notes_json(const std::vector<Note>& notes) {
  report::JsonWriter json("view");
  json.begin_array("notes");
  for (const Note& note : notes) {
    json.begin_object().integer("t_ns", note.time_ns).text("text", note.text);
    if (note.lane) json.integer("lane", *note.lane);
    if (note.slice) json.integer("slice", *note.slice);
    json.end_object();
  }
  return json.end_array().take();
}

Result<std::vector<Note>> load(const std::string& path) {
  std::error_code failed;
  const fs::file_status status = fs::status(path, failed);
  if (status.type() == fs::file_type::not_found) return std::vector<Note>();
  const auto no_notes = [&] {
    return Error{Errc::kCorruptInput,
                 fmt::format("{} holds no notes of lanescope; move it away to keep notes", path)};
  };
  if (status.type() != fs::file_type::regular || fs::file_size(path, failed) > kMostBytes || failed)
    return no_notes();
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{Errc::kIo, fmt::format("{} cannot be read", path)};
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const Result<Request> request = Request::parse(text);
  if (!request) return no_notes();
  Result<std::vector<Note>> notes = request->notes();
  if (!notes) return no_notes();
  return notes;
}

}  // namespace

Answer read_notes(const std::string& trace_path) {
  const auto notes = load(file_of(trace_path));
  if (!notes) return notes.error();
  return notes_json(*notes);
}

Answer write_notes(const std::string& trace_path, const std::vector<Note>& notes) {
  const std::string path = file_of(trace_path);
  if (const auto old = load(path); !old) return old.error();
  std::error_code failed;
  if (notes.empty()) {
    fs::remove(path, failed);
  } else {
    const std::string fresh = path + ".new";
    std::ofstream file(fresh, std::ios::binary | std::ios::trunc);
    file << notes_json(notes);
    file.close();
    if (file) fs::rename(fresh, path, failed);
    if (!file || failed) {
      std::error_code ignored;
      fs::remove(fresh, ignored);
      return Error{Errc::kIo, fmt::format("the notes could not be written to {}", path)};
    }
  }
  if (failed) return Error{Errc::kIo, fmt::format("{} could not be removed", path)};
  return notes_json(notes);
}

}  // namespace lanescope::server
