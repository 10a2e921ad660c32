#include "lanescope/cli/command_line.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <new>
#include <utility>

#include "lanescope/base/byte_size.h"
#include "lanescope/base/spill_memory.h"
#include "lanescope/cli/help.h"
#include "lanescope/cli/self_profile.h"
#include "lanescope/cli/text.h"

namespace lanescope::cli {

struct CommandLine::Tree {
  CLI::App app{kOneSentence, "lanescope"};
  std::string self_profile;
  std::map<const CLI::Option*, Completion> completions;
  std::map<const CLI::App*, std::function<int(Output&)>> runs;
  std::map<const CLI::App*, std::vector<std::string>*> programs;
};

namespace {

// Sets what --help shows after the flag. If the default matters, the flag's text has it.
CLI::Option* show_value(CLI::Option* option, const std::string& value) {
  return option->option_text(value)->expected(1)->multi_option_policy(
      CLI::MultiOptionPolicy::TakeLast);
}

std::int64_t parse_number(const std::string& flag, const std::string& text, std::int64_t smallest,
                          std::int64_t largest) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  const std::string range = largest == std::numeric_limits<std::int64_t>::max()
                                ? fmt::format("a whole number, {} or more", smallest)
                                : fmt::format("a whole number from {} to {}", smallest, largest);
  if (error != std::errc() || at != end || value < smallest || value > largest) {
    throw CLI::ValidationError(flag, fmt::format("expects {}; found '{}'", range, text));
  }
  return value;
}

std::vector<std::string> flag_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options({})) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

bool is_file(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

int explain_mistake(const CommandLine& line, const CLI::ParseError& error, Output& output) {
  const std::vector<CLI::App*> chosen = line.app().get_subcommands();
  const bool in_command = !chosen.empty();
  const CLI::App& app = in_command ? *chosen.front() : line.app();
  const std::string where = in_command ? app.get_name() + ": " : "";
  const std::string help =
      in_command ? fmt::format("lanescope {} --help", app.get_name()) : "lanescope --help";
  std::vector<std::string> extra = app.remaining(true);
  extra.erase(std::remove(extra.begin(), extra.end(), "--"), extra.end());

  std::string what = error.what();
  if (!extra.empty() && extra.front().starts_with("-") && extra.front() != "-") {
    const std::string flag = extra.front().substr(0, extra.front().find('='));
    const auto close = close_matches(flag, flag_names(app), 1);
    what = fmt::format("there is no flag {}{}", flag,
                       close.empty() ? "" : "; did you mean " + close.front() + "?");
  } else if (!extra.empty() && !in_command) {
    if (is_file(extra.front())) {
      what = fmt::format("expected a command first, found a file; try: lanescope explain {}",
                         extra.front());
    } else {
      const auto close = close_matches(extra.front(), line.command_names());
      what = fmt::format("there is no command '{}'; {}", extra.front(),
                         close.empty() ? "commands are " + joined_or(line.command_names())
                                       : "did you mean " + joined_or(close) + "?");
    }
  } else if (!extra.empty() && app.get_name() == "explain" && is_file(extra.front())) {
    what = fmt::format(
        "expected one trace, found another one, {}. Several ranks of one job: lanescope "
        "ranks FILES; before and after a change: lanescope diff A B",
        extra.front());
  } else if (!extra.empty()) {
    what = fmt::format("expected no further argument, found '{}'", extra.front());
  } else if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    what = fmt::format("expected {}", what.substr(0, what.find(" is required")));
  } else if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    what = fmt::format("{} expects a value", what.substr(0, what.find(':')));
  } else if (dynamic_cast<const CLI::ValidationError*>(&error) != nullptr) {
    what = what.replace(what.find(": "), 2,
                        " ");  // "--sort-by: expects ..." reads as a sentence without the colon
  }
  output.complain(fmt::format("{}{}{} see {}", where, what, what.ends_with("?") ? "" : ";", help));
  return kUsage;
}

}  // namespace

Option Option::excludes(Option other) const {
  option_->excludes(other.option_);
  return *this;
}

Option Option::needs(Option other) const {
  option_->needs(other.option_);
  return *this;
}

Option Option::not_required() const {
  option_->required(false);
  return *this;
}

Option Option::may_lack_value(const std::string& value) const {
  option_->expected(0, 1)->default_str(value);
  return *this;
}

Option Command::argument(const std::string& name, std::string* into, const std::string& text,
                         Completion completion) {
  CLI::Option* option = app_->add_option(name, *into, text)->required();
  line_->tree_->completions[option] = std::move(completion);
  return Option(option);
}

Option Command::arguments(const std::string& name, std::vector<std::string>* into,
                          const std::string& text) {
  return Option(app_->add_option(name, *into, text));
}

Option Command::text_flag(const std::string& names, std::string* into, const std::string& value,
                          const std::string& text, Completion completion) {
  CLI::Option* option = show_value(app_->add_option(names, *into, text), value);
  line_->tree_->completions[option] = std::move(completion);
  return Option(option);
}

Option Command::repeated_flag(const std::string& names, std::vector<std::string>* into,
                              const std::string& value, const std::string& text) {
  return Option(app_->add_option(names, *into, text)->option_text(value)->expected(1)->take_all());
}

Option Command::choice_flag(const std::string& names, std::string* into,
                            const std::vector<std::string>& words, const std::string& text) {
  const auto check = [words, into, names](const std::string& given) {
    if (std::find(words.begin(), words.end(), given) == words.end()) {
      throw CLI::ValidationError(names,
                                 fmt::format("expects {}; found '{}'", joined_or(words), given));
    }
    *into = given;
  };
  std::string shown;
  for (const std::string& word : words) shown += (shown.empty() ? "" : "|") + word;
  CLI::Option* option =
      show_value(app_->add_option_function<std::string>(names, check, text), shown);
  line_->tree_->completions[option] = {Completes::kWords, words};
  return Option(option);
}

Option Command::number_flag(const std::string& names, std::optional<std::int64_t>* into,
                            std::int64_t smallest, std::int64_t largest, const std::string& text) {
  const auto parse = [=](const std::string& given) {
    *into = parse_number(names, given, smallest, largest);
  };
  return Option(show_value(app_->add_option_function<std::string>(names, parse, text), "N"));
}

Option Command::width_flag(const std::string& names, std::optional<int>* into,
                           const std::string& text) {
  const auto parse = [=](const std::string& given) {
    if (given == "none") {
      into->reset();
    } else {
      *into = static_cast<int>(parse_number(names, given, 1, 1'000'000));
    }
  };
  return Option(show_value(app_->add_option_function<std::string>(names, parse, text), "N|none"));
}

Option Command::switch_flag(const std::string& names, bool* into, const std::string& text) {
  return Option(app_->add_flag(names, *into, text));
}

void Command::old_name(const std::string& name) { app_->alias(name); }

void Command::epilogue(const std::string& lines) { app_->footer(lines); }

void Command::takes_program(std::vector<std::string>* into) {
  line_->tree_->programs[app_] = into;
  app_->formatter(help_formatter(" -- PROGRAM ARGS..."));
}

void Command::runs(std::function<int(Output&)> run) { line_->tree_->runs[app_] = std::move(run); }

CommandLine::CommandLine() : tree_(std::make_unique<Tree>()) {
  CLI::App& app = tree_->app;
  app.require_subcommand(0, 1);  // so that a file called "info" can be an argument
  app.formatter(help_formatter());
  app.set_help_flag("-h,--help", "print this help");
  app.set_version_flag("--version", version_line());
  app.get_option("--version")->description("print the version");
  app.get_option("--version")->configurable(false);
  tree_->completions[app.add_option("--self-profile", tree_->self_profile,
                                    "write a trace of lanescope itself; goes before the command")
                         ->option_text("OUT")] = {Completes::kFile};
  add_table_command(*this);
  add_explain_command(*this);
  add_view_command(*this);
  add_whatif_command(*this);
  add_diff_command(*this);
  add_check_command(*this);
  add_ranks_command(*this);
  add_merge_command(*this);
  add_kernels_command(*this);
  add_roofline_command(*this);
  add_tree_command(*this);
#if LANESCOPE_HAS_SQL
  add_sql_command(*this);
#endif
  add_info_command(*this);
  add_memory_command(*this);
  add_flame_command(*this);
  add_describe_command(*this);
  add_convert_command(*this);
  add_index_command(*this);
  add_record_command(*this);
  add_sample_command(*this);
  add_recover_command(*this);
  add_clean_command(*this);
  add_doctor_command(*this);
  add_completion_command(*this);
  add_version_command(*this);
  add_help_command(*this);
}

CommandLine::~CommandLine() = default;

const CLI::App& CommandLine::app() const { return tree_->app; }

bool CommandLine::takes_program(const CLI::App* app) const { return tree_->programs.contains(app); }

Command CommandLine::command(const std::string& name, const std::string& text) {
  CLI::App* sub = tree_->app.add_subcommand(name, text);
  sub->set_help_flag("-h,--help", "print this help");
  return {*this, *sub};
}

const Completion* CommandLine::completion(const CLI::Option* option) const {
  const auto found = tree_->completions.find(option);
  return found == tree_->completions.end() ? nullptr : &found->second;
}

std::vector<std::string> CommandLine::command_names() const {
  std::vector<std::string> names;
  for (const CLI::App* sub : tree_->app.get_subcommands({})) names.push_back(sub->get_name());
  return names;
}

const CLI::App* CommandLine::find_command(const std::string& name) const {
  for (const CLI::App* sub : tree_->app.get_subcommands({})) {
    if (sub->check_name(name)) return sub;  // also by an old name
  }
  return nullptr;
}

int CommandLine::parse_and_run(std::vector<std::string> arguments, Output& output) {
  int code = kFailed;
  const char* const budget = std::getenv("LANESCOPE_MEMORY");
  if (budget && !parse_byte_size(budget)) {
    output.complain(
        fmt::format("LANESCOPE_MEMORY: expected a size such as 4GiB, found '{}'", budget));
    return output.finish(kUsage);
  }
  try {
    code = run(arguments, output);
  } catch (const CLI::CallForHelp&) {
    const std::vector<CLI::App*> chosen = tree_->app.get_subcommands();
    write_help(output, (chosen.empty() ? tree_->app : *chosen.front()).help());
    code = kOk;
  } catch (const CLI::CallForVersion&) {
    output.write(version_line() + "\n");
    code = kOk;
  } catch (const CLI::ParseError& error) {
    code = explain_mistake(*this, error, output);
  } catch (const SpillFailed& error) {
    output.complain(error.what());
  } catch (const std::bad_alloc&) {
    output.complain(
        "expected more free memory than there is; close other programs or take a smaller trace");
  } catch (const std::exception& error) {
    output.complain(fmt::format("unexpected failure: {}", error.what()));
  }
  return output.finish(code);
}

int CommandLine::run(std::vector<std::string>& arguments, Output& output) {
  if (arguments.empty()) {
    write_help(output, tree_->app.help());
    return kOk;
  }
  // Before CLI11 sees them: it would take flags of the program as ours.
  std::vector<std::string> program;
  const CLI::App* first = find_command(arguments.front());
  if (first != nullptr && tree_->programs.contains(first)) {
    const auto mark = std::find(arguments.begin(), arguments.end(), "--");
    if (mark != arguments.end()) {
      program.assign(mark + 1, arguments.end());
      arguments.erase(mark, arguments.end());
    }
    *tree_->programs.at(first) = std::move(program);
  }
  std::reverse(arguments.begin(), arguments.end());  // CLI11 reads them from the end
  tree_->app.parse(arguments);
  return dispatch(output);
}

int CommandLine::dispatch(Output& output) {
  const std::vector<CLI::App*> chosen = tree_->app.get_subcommands();
  if (chosen.empty()) {
    write_help(output, tree_->app.help());
    return kOk;
  }
  const auto run_command = [&] { return tree_->runs.at(chosen.front())(output); };
  if (tree_->self_profile.empty()) return run_command();
  return run_self_profiled(tree_->self_profile, chosen.front()->get_name(), run_command, output);
}

}  // namespace lanescope::cli
