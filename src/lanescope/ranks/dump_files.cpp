#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "lanescope/ranks/hang.h"
#include "lanescope/ranks/rank_files.h"

namespace lanescope::ranks {
namespace {

constexpr std::size_t kHeadBytes = 4096;

std::string head_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::string head(kHeadBytes, '\0');
  in.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, in.gcount())));
  return head;
}

Result<FlightDump> read_file(const std::string& path) {
  std::error_code failed;
  const auto size = std::filesystem::file_size(path, failed);
  if (failed) return Error{Errc::kIo, failed.message()};
  if (size > kMostDumpBytes)
    return Error{Errc::kLimit, fmt::format("expected a dump of at most {} MiB, found {}",
                                           kMostDumpBytes >> 20, size >> 20)};
  std::ifstream in(path, std::ios::binary);
  if (!in) return Error{Errc::kIo, "it cannot be read"};
  const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  return read_flight_dump(bytes, path);
}

Result<FlightDump> read_recording(
    const std::string& path, const std::function<Result<Trace>(const std::string&)>& read_trace) {
  LANESCOPE_TRY(const Trace trace, read_trace(path));
  return dump_of_trace(trace, path);
}

}  // namespace

Result<std::vector<DumpFile>> read_dump_files(
    const std::vector<std::string>& paths, std::span<const std::string_view> endings,
    const std::function<Result<Trace>(const std::string& path)>& read_trace) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code failed;
    if (!std::filesystem::is_directory(path, failed)) {
      LANESCOPE_TRY(const std::vector<std::string> found, find_rank_files({path}, {}));
      files.insert(files.end(), found.begin(), found.end());
      continue;
    }
    for (std::filesystem::directory_iterator at(path, failed), end; !failed && at != end;
         at.increment(failed))
      if (std::error_code ignored; at->is_regular_file(ignored) && files.size() < kMostFiles &&
                                   looks_like_dump(head_of(at->path())))
        files.push_back(at->path().string());
    if (failed)
      return Error{Errc::kIo, fmt::format("could not list '{}': {}", path, failed.message())};
  }
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  if (files.empty())  // no dumps: recordings
    if (auto traces = find_rank_files(paths, endings)) files = *std::move(traces);
  if (files.empty())
    return Error{
        Errc::kInvalidArgument,
        fmt::format("expected flight-recorder dumps, such as nccl_trace_rank_0, found none in "
                    "'{}'",
                    paths.empty() ? "" : paths.front())};
  std::vector<DumpFile> out;
  for (std::string& file : files) {
    Result<FlightDump> dump =
        looks_like_dump(head_of(file)) ? read_file(file) : read_recording(file, read_trace);
    out.push_back({std::move(file), std::move(dump)});
  }
  return out;
}

}  // namespace lanescope::ranks
