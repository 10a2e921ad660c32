// `lanescope index`: writes a trace's index file, so that the next question starts at once.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lanescope/cli/command_line.h"
#include "lanescope/cli/open_trace.h"
#include "lanescope/cli/progress.h"
#include "lanescope/cli/text.h"
#include "lanescope/codec/byte_sink.h"
#include "lanescope/format/index_file/index_place.h"
#include "lanescope/format/index_file/open_indexed.h"
#include "lanescope/record/range.h"
#include "lanescope/report/json_writer.h"
#include "lanescope/report/text_format.h"
#if LANESCOPE_HAS_VIEW
#include "lanescope/server/kept_view.h"
#endif

namespace lanescope::cli {
namespace {

struct IndexFlags {
  std::string path;
  bool cache = false, force = false, json = false;
};

int wrong(Output& output, const Error& error, int code) {
  output.complain("index: " + message_of(error));
  return code;
}

// Where the index goes; `instead_of`: why it cannot lie next to its trace.
struct Place {
  std::filesystem::path path;
  std::string instead_of;
};

std::optional<std::filesystem::path> place_in_cache(const std::string& path) {
  const auto cache = format::IndexCache::of_user();
  if (!cache || !cache->make()) return std::nullopt;
  return cache->index_of(path);
}

// Never over a file of another program, unless the user says so; a folder and the like stay as they are.
Result<void> check_next_to(const std::filesystem::path& index, bool force) {
  const char* found = nullptr;
  switch (format::find_index_place(index)) {
    case format::IndexPlace::kFree:
      return {};
    case format::IndexPlace::kOther:
      found = "another file";
      break;
    case format::IndexPlace::kUnreadable:
      found = "a file that you cannot read";
      break;
    case format::IndexPlace::kNoFile:
      return Error{
          Errc::kInvalidArgument,
          fmt::format("expected an index of lanescope at {}, found no regular file; move it, or "
                      "put the index into your cache folder with --cache",
                      index.string())};
  }
  if (force) return {};
  return Error{Errc::kInvalidArgument,
               fmt::format("expected an index of lanescope at {}, found {}; move it, or write over "
                           "it with --force",
                           index.string(), found)};
}

Result<Place> find_place(const std::string& path, bool in_cache, bool force) {
  constexpr std::string_view kCacheFolder =
      "a cache folder that only you can write: $XDG_CACHE_HOME or ~/.cache";
  if (in_cache) {
    if (const auto cached = place_in_cache(path)) return Place{*cached, ""};
    return Error{Errc::kUnavailable, fmt::format("--cache: expected {}; found none", kCacheFolder)};
  }
  const std::filesystem::path next_to_it = format::index_path_of(path);
  LANESCOPE_TRY_VOID(check_next_to(next_to_it, force));
  const auto tried = codec::create_file(next_to_it);  // leaves nothing: it is not finished
  if (tried) return Place{next_to_it, ""};
  const std::string reason = message_of(tried.error());
  if (const auto cached = place_in_cache(path)) return Place{*cached, reason};
  return Error{Errc::kUnavailable,
               fmt::format("{}; expected {}; found none", reason, kCacheFolder)};
}

Result<format::MadeIndex> make(const std::string& path, const std::filesystem::path& into,
                               Output& output) {
  RecordFunction stage("index: read and write");
  LANESCOPE_TRY(const format::IndexOptions options, format::index_options_from_environment());
  ProgressLine line(output, "reading " + std::filesystem::path(path).filename().string());
  format::ReadOptions read;
  read.progress = [&](std::uint64_t done, std::uint64_t total) { line.update(done, total); };
  format::MakeKept keep;
#if LANESCOPE_HAS_VIEW
  // The lanes of the viewer too. Of a trace that has none, as its times cannot be right, the columns.
  keep = [](const Trace& trace) {
    auto kept = server::make_kept_view(trace);
    return kept ? std::move(*kept) : format::KeptSections();
  };
#endif
  return format::make_index(path, read, options, into, keep);
}

int run_index(const IndexFlags& flags, Output& output) {
  if (flags.path == "-")
    return wrong(output,
                 {Errc::kInvalidArgument,
                  "expected a trace in a file, found standard input, which has no index"},
                 kUsage);
  int code = kOk;
  const std::optional<std::string> path = file_of(flags.path, output, &code);
  if (!path) return code;
  if (std::error_code failed; !std::filesystem::exists(*path, failed))
    return wrong(output, missing_file(*path), kUsage);
  const auto place = find_place(*path, flags.cache, flags.force);
  if (!place)
    return wrong(output, place.error(),
                 place.error().code == Errc::kInvalidArgument ? kUsage : kFailed);
  auto made = make(*path, place->path, output);
  if (!made) {
    const bool is_output = made.error().message.starts_with("cannot write");
    if (is_output && place->path == format::index_path_of(*path))
      made.error().message += "; lanescope index --cache puts it into your cache folder";
    return wrong(output, made.error(), is_output ? kFailed : kUsage);
  }
  if (!place->instead_of.empty())
    output.complain(fmt::format("index: {}; the index is in your cache folder instead: {}",
                                place->instead_of, made->path.string()));
  if (flags.json) {
    report::JsonWriter json("index");
    json.text("index", made->path.string()).integer("index_bytes", made->bytes);
    json.text("trace", *path).integer("trace_bytes", made->trace_bytes);
    json.integer("slice_count", made->slices);
    output.write(json.take());
    return kOk;
  }
  output.write(fmt::format("wrote {}: {} slices, {}; it is used as long as {} stays as it is\n",
                           made->path.string(), with_commas(made->slices),
                           report::format_size(static_cast<std::int64_t>(made->bytes)),
                           std::filesystem::path(*path).filename().string()));
  return kOk;
}

}  // namespace

void add_index_command(CommandLine& line) {
  Command command =
      line.command("index", "write an index next to a trace, so that it opens in milliseconds");
  const auto flags = std::make_shared<IndexFlags>();
  command.argument("TRACE", &flags->path, "trace to index; a folder means its newest trace",
                   {Completes::kFile});
  command.switch_flag("--cache", &flags->cache, "put it into your cache folder instead");
  command.switch_flag("--force", &flags->force,
                      "write over TRACE.lanescope even if it is a file of another program");
  command.switch_flag("--json", &flags->json, "write JSON");
  command.epilogue(R"(Examples:
  lanescope index trace.json.gz            writes trace.json.gz.lanescope
  lanescope index trace.json.gz --cache    writes into ~/.cache/lanescope

If the folder of TRACE cannot be written, the index goes into your cache folder, and a line says so.
A file of another program that is called TRACE.lanescope stays as it is, unless --force is given.
Every command that reads TRACE uses its index, and reads TRACE itself once it has changed. Traces of
256 MB of text or 700,000 slices or more are indexed in your cache folder when they are first read.
With LANESCOPE_INDEX=read no command writes an index, with LANESCOPE_INDEX=off none uses one. An index can
be removed at any time.
)");
  command.runs([flags](Output& output) -> int { return run_index(*flags, output); });
}

}  // namespace lanescope::cli
