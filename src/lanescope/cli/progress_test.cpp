#include "lanescope/cli/progress.h"

#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <array>
#include <string>

namespace lanescope::cli {
namespace {

TEST(ProgressTextTest, ShowsShareAmountAndSpeed) {
  EXPECT_EQ(progress_text("reading a", ProgressUnit::kBytes, 50'000'000, 200'000'000, 0.5, 79),
            "reading a    25 %   50 of 200 MB   100 MB/s");
}

TEST(ProgressTextTest, EventsCountInMillions) {
  EXPECT_EQ(progress_text("writing a", ProgressUnit::kEvents, 500'000, 2'000'000, 0.25, 79),
            "writing a    25 %   0.5 of 2.0 M events   2.0 M events/s");
}

TEST(ProgressTextTest, WithoutATotalThereIsNoShare) {
  EXPECT_EQ(progress_text("reading a", ProgressUnit::kBytes, 50'000'000, 0, 2, 79),
            "reading a   50 MB   25 MB/s");
}

TEST(ProgressTextTest, NeverOverAHundredPercentNorWiderThanTheTerminal) {
  EXPECT_EQ(progress_text("r", ProgressUnit::kBytes, 3'000'000, 2'000'000, 1, 79),
            "r   100 %   3 of 2 MB   3 MB/s");
  EXPECT_EQ(progress_text("reading a", ProgressUnit::kBytes, 1, 2, 1, 10), "reading a ");
}

// Standard error is a terminal of this test as long as it lives.
class ErrorTerminal {
 public:
  ErrorTerminal() : before_(dup(STDERR_FILENO)) {
    int terminal = -1;
    if (openpty(&screen_, &terminal, nullptr, nullptr, nullptr) != 0) return;
    dup2(terminal, STDERR_FILENO);
    close(terminal);
  }
  ~ErrorTerminal() {
    dup2(before_, STDERR_FILENO);
    close(before_);
    if (screen_ >= 0) close(screen_);
  }
  ErrorTerminal(const ErrorTerminal&) = delete;
  ErrorTerminal& operator=(const ErrorTerminal&) = delete;

  // Waits for it. Empty: there is no terminal.
  std::string read_some() const {
    std::array<char, 512> bytes{};
    const ssize_t count = ::read(screen_, bytes.data(), bytes.size());
    return {bytes.data(), count > 0 ? static_cast<std::size_t>(count) : 0};
  }

 private:
  int before_, screen_ = -1;
};

TEST(WaitLineTest, CountsSecondsOnATerminalAndClearsItsLine) {
  const ErrorTerminal terminal;
  std::string screen;
  {
    const Output output;
    const WaitLine wait(output, "finding lanes");
    while (screen.find("finding lanes   2 s") == std::string::npos) {
      const std::string more = terminal.read_some();
      ASSERT_FALSE(more.empty());
      screen += more;
    }
  }
  EXPECT_TRUE(screen.starts_with("\rfinding lanes   1 s"));
  EXPECT_TRUE(terminal.read_some().ends_with("\r" + std::string(79, ' ') + "\r"));
}

}  // namespace
}  // namespace lanescope::cli
