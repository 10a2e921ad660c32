// The prompt of `lanescope sql`: lines with editing, history and completion where libedit was
// found, else plain lines.
#pragma once
#include <memory>
#include <string>
#include <vector>

namespace lanescope::cli {

enum class LineEnd : unsigned char { kLine, kInterrupted, kClosed };

class LineReader {
 public:
  virtual ~LineReader() = default;
  // Prints `prompt` and reads a line, without its newline. kInterrupted: Ctrl-C was pressed.
  virtual LineEnd read(const std::string& prompt, std::string& line) = 0;
  virtual void remember(const std::string& statement) = 0;
};

// `words`: what the tab key completes. History is kept in $XDG_STATE_HOME/lanescope/sql_history
// (else ~/.local/state); without a home it ends with the program. One at a time.
std::unique_ptr<LineReader> make_line_reader(std::vector<std::string> words);

// Ctrl-C since the last call of forget_interrupt().
bool was_interrupted();
void forget_interrupt();

}  // namespace lanescope::cli
