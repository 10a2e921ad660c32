#include <fmt/format.h>

#include <memory>

#include "lanescope/cli/command_line.h"
#include "lanescope/cli/help.h"
#include "lanescope/cli/text.h"

namespace lanescope::cli {

void add_help_command(CommandLine& line) {
  Command command = line.command("help", "explain a command, with examples");
  const auto topic = std::make_shared<std::string>();
  command
      .argument("COMMAND", topic.get(), "a command; without it: the list of commands",
                {Completes::kWords, line.command_names()})
      .not_required();
  command.runs([&line, topic](Output& output) -> int {
    const CLI::App* app = topic->empty() ? &line.app() : line.find_command(*topic);
    if (app == nullptr) {
      output.complain(fmt::format("help: expected a command, found '{}'; commands are {}", *topic,
                                  joined_or(line.command_names())));
      return kUsage;
    }
    write_help(output, help_text(*app));
    return kOk;
  });
}

}  // namespace lanescope::cli
