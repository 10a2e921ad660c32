#include <fmt/format.h>

#include <memory>

#include "lanescope/cli/command_line.h"
#include "lanescope/cli/completion.h"

namespace lanescope::cli {

void add_completion_command(CommandLine& line) {
  Command command = line.command(
      "completion", "print a script that completes commands, flags and files in your shell");
  const auto shell = std::make_shared<std::string>();
  command.argument("SHELL", shell.get(), "bash, zsh or fish",
                   {Completes::kWords, {"bash", "zsh", "fish"}});
  command.epilogue(R"(Examples:
  source <(lanescope completion bash)        for this shell; for all, put the line into ~/.bashrc
  source <(lanescope completion zsh)         the same for zsh (after compinit)
  lanescope completion fish | source         the same for fish
)");
  command.runs([&line, shell](Output& output) -> int {
    if (*shell == "bash") {
      output.write(completion_script(line, Shell::kBash));
    } else if (*shell == "zsh") {
      output.write(completion_script(line, Shell::kZsh));
    } else if (*shell == "fish") {
      output.write(completion_script(line, Shell::kFish));
    } else {
      output.complain(fmt::format("completion: expected bash, zsh or fish; found '{}'", *shell));
      return kUsage;
    }
    return kOk;
  });
}

}  // namespace lanescope::cli
