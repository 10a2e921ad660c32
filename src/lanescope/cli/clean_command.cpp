// `lanescope clean`: lists and removes what killed processes left in a folder.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

#include "lanescope/cli/command_line.h"
#include "lanescope/cli/leftover_files.h"
#include "lanescope/cli/text.h"
#include "lanescope/report/json_writer.h"
#include "lanescope/report/text_format.h"

namespace lanescope::cli {
namespace {

struct CleanFlags {
  std::string folder;
  bool yes = false, json = false;
  LeftoverOptions which;
};

struct Totals {
  std::uint64_t leftovers = 0, leftover_bytes = 0, removed = 0, removed_bytes = 0;
};

std::string size_text(std::uint64_t bytes) {
  return report::format_size(static_cast<std::int64_t>(bytes));
}

// Removes it. Returns "", or why it failed.
std::string remove_file(const std::string& path) {
  return unlink(path.c_str()) == 0 ? "" : std::strerror(errno);
}

std::string files_text(std::uint64_t count) {
  return fmt::format("{} file{}", with_commas(count), count == 1 ? "" : "s");
}

void write_json(const CleanFlags& flags, const std::vector<LeftoverFile>& files,
                const std::vector<std::string>& problems, const Totals& totals, Output& output) {
  report::JsonWriter json("clean");
  json.text("folder", flags.folder).boolean("removes", flags.yes);
  json.integer("leftover_count", totals.leftovers).integer("leftover_bytes", totals.leftover_bytes);
  json.integer("removed_count", totals.removed).integer("removed_bytes", totals.removed_bytes);
  json.begin_array("files");
  for (std::size_t i = 0; i < files.size(); ++i) {
    const LeftoverFile& file = files[i];
    json.begin_object().text("path", file.path).text("what", file.what);
    json.integer("bytes", file.bytes).boolean("leftover", file.why_not.empty());
    json.boolean("removed", flags.yes && file.why_not.empty() && problems[i].empty());
    json.text("stays_because", file.why_not.empty() ? problems[i] : file.why_not).end_object();
  }
  json.end_array();
  output.write(json.take());
}

void write_text(const CleanFlags& flags, const std::vector<LeftoverFile>& files,
                const Totals& totals, Output& output) {
  for (const LeftoverFile& file : files) {
    if (file.why_not.empty())
      output.write(fmt::format("{:>10}  {}  ({})\n", size_text(file.bytes), file.path, file.what));
  }
  for (const LeftoverFile& file : files) {
    if (!file.why_not.empty())
      output.write(fmt::format("stays: {}  ({}, {}): {}\n", file.path, file.what,
                               size_text(file.bytes), file.why_not));
  }
  if (totals.leftovers == 0)
    return output.write(fmt::format("nothing to remove in '{}'\n", flags.folder));
  if (flags.yes)
    return output.write(fmt::format("removed {}, {}\n", files_text(totals.removed),
                                    size_text(totals.removed_bytes)));
  output.write(fmt::format("{}, {}; nothing was removed. Add --yes to remove {}\n",
                           files_text(totals.leftovers), size_text(totals.leftover_bytes),
                           totals.leftovers == 1 ? "it" : "them"));
}

int run_clean(const CleanFlags& flags, Output& output) {
  const auto found = find_leftovers(flags.folder, flags.which);
  if (!found) {
    output.complain("clean: " + message_of(found.error()));
    return kUsage;
  }
  Totals totals;
  std::vector<std::string> problems(found->size());
  for (std::size_t i = 0; i < found->size(); ++i) {
    const LeftoverFile& file = (*found)[i];
    if (!file.why_not.empty()) continue;
    ++totals.leftovers;
    totals.leftover_bytes += file.bytes;
    if (!flags.yes) continue;
    problems[i] = remove_file(file.path);
    if (!problems[i].empty()) {
      output.complain(fmt::format("clean: '{}' could not be removed: {}", file.path, problems[i]));
      continue;
    }
    ++totals.removed;
    totals.removed_bytes += file.bytes;
  }
  if (flags.json)
    write_json(flags, *found, problems, totals, output);
  else
    write_text(flags, *found, totals, output);
  return flags.yes && totals.removed < totals.leftovers ? kFailed : kOk;
}

}  // namespace

void add_clean_command(CommandLine& line) {
  Command command = line.command("clean", "list or remove what killed processes left in a folder");
  const auto flags = std::make_shared<CleanFlags>();
  command.argument("DIR", &flags->folder, "folder to search, without its subfolders",
                   {Completes::kFolder});
  command.switch_flag("--yes", &flags->yes, "remove what is listed (default: only list it)");
  command.switch_flag("--recordings", &flags->which.recordings,
                      "also recordings of killed processes that have no trace yet");
  command.switch_flag("--any-host", &flags->which.any_host,
                      "also files of other machines and of unknown ones");
  command.switch_flag("--json", &flags->json, "write JSON");
  command.epilogue(R"(Examples:
  lanescope clean lanescope_traces
  lanescope clean lanescope_traces --yes
  lanescope clean /tmp --yes

Leftovers are files of this machine's processes that have ended: half-written files (.partial-<pid>, .part), copies for
reading (.read<pid>), temporary recordings, and recordings of killed processes that have a trace.
Finished traces, tables and recordings always stay, and so do files that a running process may still write.
)");
  command.runs([flags](Output& output) -> int { return run_clean(*flags, output); });
}

}  // namespace lanescope::cli
