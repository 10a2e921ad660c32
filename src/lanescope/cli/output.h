// Standard output and standard error of one run of the command: what may be coloured, what must be
// escaped, what failed.
#pragma once
#include <string>
#include <string_view>

#include "lanescope/base/result.h"

namespace lanescope::cli {

// The codes every subcommand keeps to; `lanescope record` passes on the code of the program it
// runs.
enum ExitCode : int {
  kOk = 0,
  kFailed = 1,      // the command's own negative answer, or an output that could not be written
  kUsage = 2,       // the input is not a trace or cannot be read, or the flags are wrong
  kPipeGone = 141,  // the reader of standard output went away while SIGPIPE was ignored: what the
                    // signal itself gives
};

// To a file or a pipe, bytes go out as they are: tables must stay byte for byte what torch prints.
// To a terminal, text is sanitized first (text.h), because names come from files that nobody
// vouches for. One thread.
class Output {
 public:
  // Looks at descriptors 1 and 2 and at NO_COLOR (https://no-color.org) and TERM=dumb once.
  Output();
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  bool out_is_terminal() const { return out_is_terminal_; }
  bool err_is_terminal() const { return err_is_terminal_; }
  bool takes_colour() const { return colour_; }
  // Columns of the terminal on standard output; 0 when there is none.
  int terminal_width() const;

  // Buffered. Errors are kept until finish().
  void write(std::string_view text);
  // Text of ours that may hold colours ("\x1b[1m" and its like, nothing else): everything around
  // them is treated by write.
  void write_styled(std::string_view text);
  // Bold on a terminal that takes colours, else plain.
  void write_heading(std::string_view text);

  // One line on standard error at once: "lanescope: " and the message, sanitized.
  void complain(std::string_view message);
  // One line on standard error without the prefix.
  void note(std::string_view message);

  // Writes what is buffered and closes standard output. `code`, or kFailed after a line about what
  // went wrong (disk full, ...), or kPipeGone in silence when the reader went away.
  int finish(int code);

 private:
  void flush();
  void write_raw(std::string_view text);

  bool out_is_terminal_;
  bool err_is_terminal_;
  bool colour_;
  std::string buffer_;
  int write_errno_ = 0;
  bool closed_ = false;
};

// "expected ..., found ...; do ..." plus where in the input, when known.
std::string message_of(const Error& error);

}  // namespace lanescope::cli
