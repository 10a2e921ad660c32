#include "lanescope/cli/output.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "lanescope/cli/text.h"

namespace lanescope::cli {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 16U;

bool wants_colour() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  const bool refused = no_color != nullptr && *no_color != '\0';
  const bool dumb = term == nullptr || std::strcmp(term, "dumb") == 0;
  return !refused && !dumb;
}

// errno of the first failed write; 0: everything was written.
int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

}  // namespace

Output::Output()
    : out_is_terminal_(isatty(STDOUT_FILENO) == 1),
      err_is_terminal_(isatty(STDERR_FILENO) == 1),
      colour_(out_is_terminal_ && wants_colour()) {}

Output::~Output() { flush(); }

int Output::terminal_width() const {
  winsize size{};
  if (!out_is_terminal_ || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

void Output::write(std::string_view text) {
  if (out_is_terminal_ && !is_safe_for_terminal(text)) {
    write_raw(sanitized(text));
  } else {
    write_raw(text);
  }
}

void Output::write_styled(std::string_view text) {
  while (!text.empty()) {
    const std::size_t escape = std::min(text.find("\x1b["), text.size());
    write(text.substr(0, escape));
    text.remove_prefix(escape);
    if (text.empty()) return;
    const std::size_t end = text.find_first_not_of("0123456789;", 2);
    const bool is_colour = end != std::string_view::npos && text[end] == 'm';
    const std::string_view sequence = text.substr(0, is_colour ? end + 1 : 1);
    if (is_colour && colour_) {
      write_raw(sequence);
    } else {
      write(sequence);
    }
    text.remove_prefix(sequence.size());
  }
}

void Output::write_heading(std::string_view text) {
  if (colour_) write_raw("\x1b[1m");
  write(text);
  if (colour_) write_raw("\x1b[0m");
}

void Output::write_raw(std::string_view text) {
  if (write_errno_ != 0) return;
  buffer_ += text;
  if (buffer_.size() >= kBufferBytes) flush();
}

void Output::flush() {
  if (write_errno_ == 0 && !closed_) write_errno_ = write_all(STDOUT_FILENO, buffer_);
  buffer_.clear();
}

void Output::complain(std::string_view message) {
  flush();  // on a terminal both streams are one, and order matters
  write_all(STDERR_FILENO, "lanescope: " + sanitized_line(message) + "\n");
}

void Output::note(std::string_view message) {
  flush();
  write_all(STDERR_FILENO, sanitized_line(message) + "\n");
}

int Output::finish(int code) {
  flush();
  // Network file systems report a full disk only here.
  if (!closed_ && ::close(STDOUT_FILENO) != 0 && write_errno_ == 0 && errno != EBADF)
    write_errno_ = errno;
  closed_ = true;
  if (write_errno_ == 0) return code;
  if (write_errno_ == EPIPE) return kBrokenPipe;
  complain(fmt::format("could not write to standard output: {}; the output above is not complete",
                       std::strerror(write_errno_)));
  return kFailed;
}

std::string message_of(const Error& error) {
  if (error.offset.value_or(0) == 0) return error.message;  // it is about the whole input
  return fmt::format("{} (at byte {})", error.message, with_commas(*error.offset));
}

std::string facts_message_of(const Error& error) {
  return (error.code == Errc::kInvalidArgument ? "--step: " : "") + message_of(error);
}

}  // namespace lanescope::cli
