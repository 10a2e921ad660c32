#include "lanescope/cli/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "lanescope/cli/text.h"

namespace lanescope::cli {
namespace {

using std::chrono::milliseconds;

void write_to_terminal(const std::string& text) {
  // A terminal that cannot be written to loses a progress line and nothing else.
  static_cast<void>(!::write(STDERR_FILENO, text.data(), text.size()));
}

std::size_t columns_of_terminal() {
  winsize size{};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return known ? size.ws_col - std::size_t{1} : 79;  // the last column would wrap
}

}  // namespace

ProgressLine::ProgressLine(const Output& output, std::string what)
    : what_(sanitized_line(what)),
      enabled_(output.err_is_terminal()),
      start_(Clock::now()),
      next_(start_ + milliseconds(1000)) {}

ProgressLine::~ProgressLine() {
  if (shown_) write_to_terminal(fmt::format("\r{:{}}\r", "", columns_of_terminal()));
}

void ProgressLine::update(std::uint64_t done_bytes, std::uint64_t total_bytes) {
  if (!enabled_) return;
  const Clock::time_point now = Clock::now();
  if (now < next_) return;
  next_ = now + milliseconds(100);
  shown_ = true;
  const std::size_t columns = columns_of_terminal();
  const double seconds = std::chrono::duration<double>(now - start_).count();
  std::string line = progress_text(what_, done_bytes, total_bytes, seconds, columns);
  line.resize(std::max(line.size(), columns), ' ');  // over what a longer line left
  write_to_terminal(line.insert(0, 1, '\r'));
}

std::string progress_text(const std::string& what, std::uint64_t done_bytes,
                          std::uint64_t total_bytes, double seconds, std::size_t columns) {
  const double megabytes = static_cast<double>(done_bytes) / 1e6;
  const double speed = seconds > 0 ? megabytes / seconds : 0;
  std::string text;
  if (total_bytes > 0) {
    const std::uint64_t done = std::min(done_bytes, total_bytes);
    const double share = static_cast<double>(done) / static_cast<double>(total_bytes);
    text = fmt::format("{:3.0f} %   {:.0f} of {:.0f} MB   {:.0f} MB/s", 100 * share, megabytes,
                       static_cast<double>(total_bytes) / 1e6, speed);
  } else {
    text = fmt::format("{:.0f} MB   {:.0f} MB/s", megabytes, speed);
  }
  text = what + "   " + text;
  // Cutting may split a character of a file name; the terminal shows that as one odd letter.
  return text.substr(0, columns);
}

}  // namespace lanescope::cli
