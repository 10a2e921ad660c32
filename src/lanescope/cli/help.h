// The help texts: what a command answers, its flags in plain words, examples to copy, exit codes.
#pragma once
#include <CLI/App.hpp>
#include <CLI/Formatter.hpp>
#include <string>
#include <utility>

#include "lanescope/cli/output.h"

namespace lanescope::cli {

inline constexpr char kOneSentence[] =
    "lanescope records, reads and explains what PyTorch/CUDA programs do on their CPU threads and "
    "GPU streams.";

std::string version_line();  // "lanescope 0.1.0"

// CLI11's tree as text: usage, sentence, arguments, flags, then the command's examples. No line
// over 100 columns.
class HelpFormatter : public CLI::Formatter {
 public:
  // `usage_tail` ends the usage line: " -- PROGRAM ARGS...".
  explicit HelpFormatter(std::string usage_tail = "") : usage_tail_(std::move(usage_tail)) {}
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;

 private:
  std::string usage_tail_;
};

// Prints it. Lines that start at the margin and end in ':' are headings.
void write_help(Output& output, const std::string& help);

}  // namespace lanescope::cli
