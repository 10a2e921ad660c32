// The tree of subcommands and flags. Parsing, help, error messages and completions come from it.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lanescope/cli/output.h"

// CLI11 parses. Its headers take seconds to compile, so only few sources include them (docs/decisions/build_time.md).
namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace lanescope::cli {

// What a shell offers for the value of a flag or an argument.
enum class Completes : std::uint8_t { kNothing, kFile, kFolder, kCommand, kWords };
struct Completion {
  Completes what = Completes::kNothing;
  std::vector<std::string> words = {};  // kWords
};

class CommandLine;

// A flag or an argument of a subcommand; lives as long as the CommandLine. The functions return the same one.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}
  Option excludes(Option other) const;  // not both
  Option needs(Option other) const;
  Option not_required() const;  // an argument
  // The flag's value may be left out, and is this one then.
  Option may_lack_value(const std::string& value) const;

 private:
  CLI::Option* option_;
};

// Declares one subcommand. Flags write into variables that the subcommand's run function captures,
// so these must live as long as the CommandLine. For a wrong value, parse_and_run() prints one line
// that says what was expected and what was found; the exit code is 2.
class Command {
 public:
  Command(CommandLine& line, CLI::App& app) : line_(&line), app_(&app) {}

  // `text` is one line; `value` is what help shows for the value: "N", "FILE".
  Option argument(const std::string& name, std::string* into, const std::string& text,
                  Completion completion = {});
  // Any number of arguments, also none.
  Option arguments(const std::string& name, std::vector<std::string>* into,
                   const std::string& text);
  Option text_flag(const std::string& names, std::string* into, const std::string& value,
                   const std::string& text, Completion completion = {});
  // May be given several times, with one value each.
  Option repeated_flag(const std::string& names, std::vector<std::string>* into,
                       const std::string& value, const std::string& text);
  Option choice_flag(const std::string& names, std::string* into,
                     const std::vector<std::string>& words, const std::string& text);
  Option number_flag(const std::string& names, std::optional<std::int64_t>* into,
                     std::int64_t smallest, std::int64_t largest, const std::string& text);
  // A number of columns, at least 1, or "none": no limit, and `into` stays empty.
  Option width_flag(const std::string& names, std::optional<int>* into, const std::string& text);
  Option switch_flag(const std::string& names, bool* into, const std::string& text);
  // An older name of the command, which keeps working.
  void old_name(const std::string& name);
  // Below the flags in --help: examples and remarks, whole lines.
  void epilogue(const std::string& lines);
  // Everything after `--` goes there, unparsed.
  void takes_program(std::vector<std::string>* into);
  void runs(std::function<int(Output&)> run);

 private:
  CommandLine* line_;
  CLI::App* app_;
};

class CommandLine {
 public:
  CommandLine();  // with every subcommand of this program
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  // Without argv[0]. Returns the exit code of output.finish(). Never throws.
  int parse_and_run(std::vector<std::string> arguments, Output& output);

  Command command(const std::string& name, const std::string& text);
  const CLI::App& app() const;
  const Completion* completion(const CLI::Option* option) const;
  bool takes_program(const CLI::App* app) const;
  std::vector<std::string> command_names() const;
  const CLI::App* find_command(const std::string& name) const;

 private:
  friend class Command;
  struct Tree;
  int run(std::vector<std::string>& arguments, Output& output);
  int dispatch(Output& output);

  std::unique_ptr<Tree> tree_;
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
