// Names a file that lanescope knows but does not read, for people who picked the wrong file.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace lanescope::format {

struct KnownFile {
  std::string found;   // a noun phrase: "an SQLite database"
  std::string advice;  // what to do: "give the trace that ..."
};

// How many bytes known_file() needs. Detection needs fewer, but some SQLite databases have the names
// of their tables only after those.
inline constexpr std::size_t kKnownFileHeadBytes = 64 * 1024;

// `head`: the first bytes of an input that no format detects, unpacked. `name`: the file's name,
// used where the bytes alone do not identify it (Nsight Systems' reports).
KnownFile known_file(std::string_view head, std::string_view name = {});

// A JSON object without traceEvents, by its keys. Nothing: not known.
std::optional<KnownFile> known_json_object(std::span<const std::string> keys);

}  // namespace lanescope::format
