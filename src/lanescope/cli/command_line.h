// The tree of subcommands and flags. Parsing, help, error messages and completions come from it.
#pragma once
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lanescope/cli/output.h"

namespace lanescope::cli {

// What a shell offers for the value of a flag or an argument.
enum class Completes : std::uint8_t { kNothing, kFile, kFolder, kCommand, kWords };
struct Completion {
  Completes what = Completes::kNothing;
  std::vector<std::string> words = {};  // kWords
};

class CommandLine;

// Declares one subcommand. Flags write into variables that the subcommand's run function captures,
// so these must live as long as the CommandLine. A wrong value throws CLI::ValidationError with
// what was expected and what was found; parse_and_run() turns that into one line and exit code 2.
class Command {
 public:
  Command(CommandLine& line, CLI::App& app) : line_(&line), app_(&app) {}

  // `text` is one line; `value` is what help shows for the value: "N", "FILE".
  CLI::Option* argument(const std::string& name, std::string* into, const std::string& text,
                        Completion completion = {});
  // Any number of arguments, also none.
  CLI::Option* arguments(const std::string& name, std::vector<std::string>* into,
                         const std::string& text);
  CLI::Option* text_flag(const std::string& names, std::string* into, const std::string& value,
                         const std::string& text, Completion completion = {});
  CLI::Option* choice_flag(const std::string& names, std::string* into,
                           const std::vector<std::string>& words, const std::string& text);
  CLI::Option* number_flag(const std::string& names, std::optional<std::int64_t>* into,
                           std::int64_t smallest, std::int64_t largest, const std::string& text);
  // A number of columns, at least 1, or "none": no limit, and `into` stays empty.
  CLI::Option* width_flag(const std::string& names, std::optional<int>* into,
                          const std::string& text);
  CLI::Option* switch_flag(const std::string& names, bool* into, const std::string& text);
  // An older name of the command, which keeps working.
  void old_name(const std::string& name) { app_->alias(name); }
  // Below the flags in --help: examples and remarks, whole lines.
  void epilogue(const std::string& lines) { app_->footer(lines); }
  // Everything after `--` goes there, unparsed.
  void takes_program(std::vector<std::string>* into);
  void runs(std::function<int(Output&)> run);

  CLI::App& app() { return *app_; }

 private:
  CommandLine* line_;
  CLI::App* app_;
};

class CommandLine {
 public:
  CommandLine();  // with every subcommand of this program
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  // Without argv[0]. Returns the exit code of output.finish(). Never throws.
  int parse_and_run(std::vector<std::string> arguments, Output& output);

  Command command(const std::string& name, const std::string& text);
  const CLI::App& app() const { return app_; }
  const Completion* completion(const CLI::Option* option) const;
  bool takes_program(const CLI::App* app) const { return programs_.contains(app); }
  std::vector<std::string> command_names() const;
  const CLI::App* find_command(const std::string& name) const;

 private:
  friend class Command;
  int run(std::vector<std::string>& arguments, Output& output);
  int dispatch(Output& output);
  int explain_mistake(const CLI::ParseError& error, Output& output);

  CLI::App app_;
  std::string self_profile_;
  std::map<const CLI::Option*, Completion> completions_;
  std::map<const CLI::App*, std::function<int(Output&)>> runs_;
  std::map<const CLI::App*, std::vector<std::string>*> programs_;
};

inline constexpr char kTraceArgument[] =
    "a trace: JSON of torch.profiler, Kineto or lanescope, also .gz or .zst; a recording; a "
    "folder, which means its newest trace; - reads standard input";

// Each is in <name>_command.cpp: declares the flags and the function to run.
void add_table_command(CommandLine& line);
void add_tree_command(CommandLine& line);
void add_explain_command(CommandLine& line);
void add_view_command(CommandLine& line);
void add_whatif_command(CommandLine& line);
void add_diff_command(CommandLine& line);
void add_check_command(CommandLine& line);
void add_ranks_command(CommandLine& line);
void add_merge_command(CommandLine& line);
void add_kernels_command(CommandLine& line);
void add_roofline_command(CommandLine& line);
void add_sql_command(CommandLine& line);
void add_info_command(CommandLine& line);
void add_memory_command(CommandLine& line);
void add_flame_command(CommandLine& line);
void add_describe_command(CommandLine& line);
void add_convert_command(CommandLine& line);
void add_index_command(CommandLine& line);
void add_record_command(CommandLine& line);
void add_sample_command(CommandLine& line);
void add_recover_command(CommandLine& line);
void add_clean_command(CommandLine& line);
void add_doctor_command(CommandLine& line);
void add_completion_command(CommandLine& line);
void add_version_command(CommandLine& line);
void add_help_command(CommandLine& line);

}  // namespace lanescope::cli
