#include "lanescope/cli/completion.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <string_view>
#include <vector>

namespace lanescope::cli {
namespace {

struct Word {
  std::string name;         // "--sort-by", "-o"; for arguments "TRACE"
  std::string description;  // first clause
  bool takes_value = false;
  Completion completion;
};

struct CommandWords {
  std::string name, description;
  std::vector<Word> flags;
  std::vector<Word> arguments;
  bool takes_program = false;
};

std::string first_clause(const std::string& text) {
  std::string clause = text.substr(0, text.find_first_of(";(:\n"));
  while (clause.ends_with(' ')) clause.pop_back();
  return clause;
}

CommandWords words_of(const CommandLine& line, const CLI::App& app) {
  CommandWords words{
      app.get_name(), first_clause(app.get_description()), {}, {}, line.takes_program(&app)};
  for (const CLI::Option* option : app.get_options({})) {
    const Completion* known = line.completion(option);
    Word word{"", first_clause(option->get_description()), !option->get_option_text().empty(),
              known != nullptr ? *known : Completion{}};
    if (!option->nonpositional()) {
      word.name = option->get_name(true, false);
      words.arguments.push_back(word);
      continue;
    }
    for (const std::string& name : option->get_lnames()) {
      word.name = "--" + name;
      words.flags.push_back(word);
    }
    for (const std::string& name : option->get_snames()) {
      word.name = "-" + name;
      words.flags.push_back(word);
    }
  }
  return words;
}

std::vector<CommandWords> all_words(const CommandLine& line) {
  std::vector<CommandWords> all;
  for (const CLI::App* sub : line.app().get_subcommands({})) all.push_back(words_of(line, *sub));
  return all;
}

std::string joined(const std::vector<std::string>& words, std::string_view between) {
  std::string out;
  for (const std::string& word : words) {
    if (!out.empty()) out += between;
    out += word;
  }
  return out;
}

// Makes a text safe inside single quotes of all three shells. Descriptions are ours, so
// only apostrophes matter.
std::string quotable(const std::string& text, std::string_view also_dropped = "") {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "\xE2\x80\x99";  // the typographic apostrophe needs no quoting
    } else if (also_dropped.find(c) == std::string_view::npos) {
      out += c;
    }
  }
  return out;
}

std::string names_of(const std::vector<CommandWords>& commands) {
  std::vector<std::string> names;
  for (const CommandWords& command : commands) names.push_back(command.name);
  return joined(names, "\\n");
}

// --- bash: one function; COMPREPLY from compgen. IFS is a newline throughout, so that file names
// may hold blanks.

std::string bash_reply(const Completion& completion) {
  switch (completion.what) {
    case Completes::kFile:
      return "compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- \"$word\"))";
    case Completes::kFolder:
      return "compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -d -- \"$word\"))";
    case Completes::kCommand:
      return "COMPREPLY=($(compgen -c -- \"$word\"))";
    case Completes::kWords:
      return fmt::format("COMPREPLY=($(compgen -W $'{}' -- \"$word\"))",
                         joined(completion.words, "\\n"));
    case Completes::kNothing:
      break;
  }
  return "COMPREPLY=()";
}

std::string bash_script(const std::vector<CommandWords>& commands) {
  std::string values, flags, arguments, programs;
  for (const CommandWords& command : commands) {
    std::vector<std::string> names;
    for (const Word& flag : command.flags) {
      names.push_back(flag.name);
      if (flag.takes_value) {
        values += fmt::format("    '{} {}') {}; return ;;\n", command.name, flag.name,
                              bash_reply(flag.completion));
      }
    }
    flags += fmt::format("    {}) flags=$'{}' ;;\n", command.name, joined(names, "\\n"));
    if (!command.arguments.empty()) {
      arguments += fmt::format("    {}) {} ;;\n", command.name,
                               bash_reply(command.arguments.front().completion));
    }
    if (command.takes_program) programs += (programs.empty() ? "" : "|") + command.name;
  }
  return fmt::format(
      R"(# bash completion for lanescope; load it with: source <(lanescope completion bash)
_lanescope() {{
  local IFS=$'\n'
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} command=${{COMP_WORDS[1]}} flags='' i
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W $'{commands}\n--help\n--version' -- "$word"))
    return
  fi
  for ((i = 2; i < COMP_CWORD; i++)); do
    if [ "${{COMP_WORDS[i]}}" = -- ] && [[ $command = @({programs}) ]]; then
      if [ $((i + 1)) -eq "$COMP_CWORD" ]; then
        COMPREPLY=($(compgen -c -- "$word"))
      else
        compopt -o filenames 2>/dev/null
        COMPREPLY=($(compgen -f -- "$word"))
      fi
      return
    fi
  done
  case "$command $before" in
{values}  esac
  case "$command" in
{flags}  esac
  if [[ $word = -* ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$word"))
    return
  fi
  case "$command" in
{arguments}  esac
}}
complete -F _lanescope lanescope
)",
      fmt::arg("commands", names_of(commands)), fmt::arg("programs", programs),
      fmt::arg("values", values), fmt::arg("flags", flags), fmt::arg("arguments", arguments));
}

// --- zsh: _arguments specs, one case per subcommand.

std::string zsh_action(const Word& word) {
  switch (word.completion.what) {
    case Completes::kFile:
      return ":file:_files";
    case Completes::kFolder:
      return ":folder:_files -/";
    case Completes::kCommand:
      return ":program:_command_names -e";
    case Completes::kWords:
      return fmt::format(":value:({})", joined(word.completion.words, " "));
    case Completes::kNothing:
      break;
  }
  return ":value: ";
}

std::string zsh_script(const std::vector<CommandWords>& commands) {
  std::string list, cases;
  for (const CommandWords& command : commands) {
    list += fmt::format("    '{}:{}'\n", command.name, quotable(command.description, ":"));
    std::string specs;
    for (const Word& flag : command.flags) {
      specs += fmt::format(" \\\n        '{}[{}]{}'", flag.name, quotable(flag.description, "[]:"),
                           flag.takes_value ? zsh_action(flag) : "");
    }
    for (const Word& argument : command.arguments)
      specs += fmt::format(" \\\n        '{}'", zsh_action(argument));
    if (command.takes_program) specs += " \\\n        '*::program:_normal'";
    cases += fmt::format("    {})\n      _arguments{} ;;\n", command.name, specs);
  }
  return fmt::format(R"(#compdef lanescope
# zsh completion for lanescope; load it with: source <(lanescope completion zsh)
_lanescope() {{
  local -a commands
  commands=(
{list}  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command=${{words[2]}}
  shift words
  (( CURRENT-- ))
  case $command in
{cases}  esac
}}
if [ "${{funcstack[1]-}}" = _lanescope ]; then _lanescope "$@"; else compdef _lanescope lanescope; fi
)",
                     fmt::arg("list", list), fmt::arg("cases", cases));
}

// --- fish: one `complete` line a flag.

std::string fish_script(const std::vector<CommandWords>& commands) {
  std::string out =
      "# fish completion for lanescope; load it with: lanescope completion fish | source\n"
      "complete -c lanescope -f\n";
  for (const CommandWords& command : commands) {
    out += fmt::format("complete -c lanescope -n __fish_use_subcommand -a {} -d '{}'\n",
                       command.name, quotable(command.description));
  }
  for (const CommandWords& command : commands) {
    const std::string here =
        fmt::format("complete -c lanescope -n '__fish_seen_subcommand_from {}'", command.name);
    for (const Word& flag : command.flags) {
      const bool is_long = flag.name.starts_with("--");
      out += fmt::format("{} -{} {}", here, is_long ? "l" : "s", flag.name.substr(is_long ? 2 : 1));
      if (flag.takes_value) {
        switch (flag.completion.what) {
          case Completes::kFile:
            out += " -r -F";
            break;
          case Completes::kFolder:
            out += " -x -a '(__fish_complete_directories)'";
            break;
          case Completes::kCommand:
            out += " -x -a '(__fish_complete_command)'";
            break;
          case Completes::kWords:
            out += fmt::format(" -x -a '{}'", joined(flag.completion.words, " "));
            break;
          case Completes::kNothing:
            out += " -x";
            break;
        }
      }
      out += fmt::format(" -d '{}'\n", quotable(flag.description));
    }
    for (const Word& argument : command.arguments) {
      switch (argument.completion.what) {
        case Completes::kFile:
          out += here + " -F\n";
          break;
        case Completes::kFolder:
          out += here + " -a '(__fish_complete_directories)'\n";
          break;
        case Completes::kWords:
          out += fmt::format("{} -a '{}'\n", here, joined(argument.completion.words, " "));
          break;
        default:
          break;
      }
    }
    if (command.takes_program) out += here + " -a '(__fish_complete_subcommand --fcs-skip=2)'\n";
  }
  return out;
}

}  // namespace

std::string completion_script(const CommandLine& line, Shell shell) {
  const std::vector<CommandWords> commands = all_words(line);
  switch (shell) {
    case Shell::kBash:
      return bash_script(commands);
    case Shell::kZsh:
      return zsh_script(commands);
    case Shell::kFish:
      break;
  }
  return fish_script(commands);
}

}  // namespace lanescope::cli
