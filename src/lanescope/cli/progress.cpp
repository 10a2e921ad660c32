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
  // A failed write loses only a progress line.
  static_cast<void>(!::write(STDERR_FILENO, text.data(), text.size()));
}

void clear_line(std::size_t columns) { write_to_terminal(fmt::format("\r{:{}}\r", "", columns)); }

std::size_t columns_of_terminal() {
  winsize size{};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return known ? size.ws_col - std::size_t{1} : 79;  // the last column would wrap
}

}  // namespace

ProgressLine::ProgressLine(const Output& output, std::string what, ProgressUnit unit)
    : what_(sanitized_line(what)),
      unit_(unit),
      enabled_(output.err_is_terminal()),
      start_(Clock::now()),
      next_(start_ + milliseconds(1000)) {}

ProgressLine::~ProgressLine() {
  if (shown_) clear_line(columns_of_terminal());
}

void ProgressLine::update(std::uint64_t done, std::uint64_t total) {
  if (!enabled_) return;
  const Clock::time_point now = Clock::now();
  if (now < next_) return;
  next_ = now + milliseconds(100);
  shown_ = true;
  const std::size_t columns = columns_of_terminal();
  const double seconds = std::chrono::duration<double>(now - start_).count();
  std::string line = progress_text(what_, unit_, done, total, seconds, columns);
  line.resize(std::max(line.size(), columns), ' ');  // covers the rest of a longer line
  write_to_terminal(line.insert(0, 1, '\r'));
}

WaitLine::WaitLine(const Output& output, const std::string& what) {
  if (output.err_is_terminal())
    thread_ = std::thread([this, what = sanitized_line(what)] { run(what); });
}

WaitLine::~WaitLine() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
  }
  ended_.notify_one();
  thread_.join();
}

void WaitLine::run(const std::string& what) {
  std::unique_lock lock(mutex_);
  for (int seconds = 1;; ++seconds) {
    if (ended_.wait_for(lock, std::chrono::seconds(1), [&] { return has_ended_; })) {
      if (seconds > 1) clear_line(columns_of_terminal());
      return;
    }
    const std::string line = fmt::format("{}   {} s", what, seconds);
    write_to_terminal(fmt::format("\r{}", std::string_view(line).substr(0, columns_of_terminal())));
  }
}

std::string progress_text(const std::string& what, ProgressUnit unit, std::uint64_t done,
                          std::uint64_t total, double seconds, std::size_t columns) {
  const bool bytes = unit == ProgressUnit::kBytes;
  const char* name = bytes ? "MB" : "M events";
  const auto millions = [&](double amount) {
    return fmt::format("{:.{}f}", amount / 1e6, bytes ? 0 : 1);
  };
  const auto amount = static_cast<double>(done);
  const std::string speed =
      fmt::format("{} {}/s", millions(seconds > 0 ? amount / seconds : 0), name);
  std::string text;
  if (total > 0) {
    const double share = std::min(1.0, amount / static_cast<double>(total));
    text = fmt::format("{}   {:3.0f} %   {} of {} {}   {}", what, 100 * share, millions(amount),
                       millions(static_cast<double>(total)), name, speed);
  } else {
    text = fmt::format("{}   {} {}   {}", what, millions(amount), name, speed);
  }
  // This may cut a character of a file name in two; the terminal shows one odd letter.
  return text.substr(0, columns);
}

}  // namespace lanescope::cli
