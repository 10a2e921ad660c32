// Standard output and standard error of the command: handles colours, escapes and failed writes.
#pragma once
#include <string>
#include <string_view>

#include "lanescope/base/result.h"

namespace lanescope::cli {

// The exit codes of all subcommands; `lanescope record` passes on the code of its program.
enum ExitCode : int {
  kOk = 0,
  kFailed = 1,        // a negative answer, or an output that could not be written
  kUsage = 2,         // the input is not a trace or cannot be read, or the flags are wrong
  kBrokenPipe = 141,  // the reader of standard output went away while SIGPIPE was ignored; the same
                      // code as from the signal
};

// Writes bytes unchanged to a file or a pipe, because tables must be equal to torch's byte
// for byte. Sanitizes text for a terminal (text.h), because names come from untrusted
// files. One thread.
class Output {
 public:
  // Checks descriptors 1 and 2, NO_COLOR (https://no-color.org) and TERM=dumb once.
  Output();
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  bool out_is_terminal() const { return out_is_terminal_; }
  bool err_is_terminal() const { return err_is_terminal_; }
  bool takes_colour() const { return colour_; }
  // Columns of the terminal on standard output; 0: no terminal.
  int terminal_width() const;

  // Buffered. Errors are kept until finish().
  void write(std::string_view text);
  // Text of ours with colours ("\x1b[1m" and similar, nothing else); the rest goes through write.
  void write_styled(std::string_view text);
  // Bold on a terminal that takes colours, else plain.
  void write_heading(std::string_view text);

  // Prints one line on standard error at once: "lanescope: " and the message, sanitized.
  void complain(std::string_view message);
  // Prints one line on standard error without the prefix.
  void note(std::string_view message);

  // Writes the buffer now, for a prompt.
  void flush();

  // Writes the buffer and closes standard output. Returns `code`; or kFailed, with a line about the
  // error (disk full, ...); or kBrokenPipe, silently, if the reader went away.
  int finish(int code);

 private:
  void write_raw(std::string_view text);

  bool out_is_terminal_;
  bool err_is_terminal_;
  bool colour_;
  std::string buffer_;
  int write_errno_ = 0;
  bool closed_ = false;
};

// "expected ..., found ...; do ..." plus the place in the input, if known.
std::string message_of(const Error& error);
// For explain::gather_facts(): begins with "--step: " if that flag is wrong, not the trace.
std::string facts_message_of(const Error& error);

}  // namespace lanescope::cli
