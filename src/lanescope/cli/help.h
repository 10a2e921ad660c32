// The help texts: what a command answers, its flags in plain words, examples to copy, exit codes.
#pragma once
#include <memory>
#include <string>

#include "lanescope/cli/output.h"

namespace CLI {
class App;
class FormatterBase;
}  // namespace CLI

namespace lanescope::cli {

inline constexpr char kOneSentence[] =
    "lanescope records, reads and explains what PyTorch/CUDA programs do on their CPU threads and "
    "GPU streams.";

std::string version_line();  // "lanescope 0.1.0"

// Writes CLI11's commands as text: usage, sentence, arguments, flags, then the command's examples. No line
// over 100 columns. `usage_tail` ends the usage line: " -- PROGRAM ARGS...".
std::shared_ptr<CLI::FormatterBase> help_formatter(const std::string& usage_tail = "");
// The help text of this command. (CLI::App::help() gives that of the subcommand that was parsed.)
std::string help_text(const CLI::App& app);

// Prints it. Lines that start at the margin and end in ':' are headings.
void write_help(Output& output, const std::string& help);

}  // namespace lanescope::cli
