#include "lanescope/cli/sql_prompt.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cwchar>
#include <filesystem>
#include <iostream>
#include <string_view>

#if LANESCOPE_HAS_EDIT
#include <histedit.h>
#endif

namespace lanescope::cli {
namespace {

volatile std::sig_atomic_t interrupted = 0;

void on_interrupt(int /*signal*/) { interrupted = 1; }

// Without SA_RESTART, so that a read that waits for a key ends.
void take_interrupts() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
}

#if LANESCOPE_HAS_EDIT

std::filesystem::path history_file() {
  const char* const state = std::getenv("XDG_STATE_HOME");
  const char* const home = std::getenv("HOME");
  std::filesystem::path folder;
  if (state && *state == '/')
    folder = state;
  else if (home && *home == '/')
    folder = std::filesystem::path(home) / ".local" / "state";
  else
    return {};
  folder /= "lanescope";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  return error ? std::filesystem::path() : folder / "sql_history";
}

// libedit's own reader tries once more after a signal; this one ends the line.
int read_character(EditLine* /*edit*/, wchar_t* out) {
  std::mbstate_t state{};
  for (;;) {
    char byte = 0;
    const ssize_t count = ::read(STDIN_FILENO, &byte, 1);
    if (count <= 0) return static_cast<int>(count);
    const std::size_t size = std::mbrtowc(out, &byte, 1, &state);
    if (size == static_cast<std::size_t>(-2)) continue;  // more bytes follow
    if (size == static_cast<std::size_t>(-1)) {          // not text: skipped
      state = {};
      continue;
    }
    return 1;
  }
}

bool is_word_byte(char c) {
  return c == '_' || c == '.' || std::isalnum(static_cast<unsigned char>(c)) != 0;
}

class EditedLines final : public LineReader {
 public:
  explicit EditedLines(std::vector<std::string> words) : words_(std::move(words)) {
    std::setlocale(LC_CTYPE, "");
    edit_ = el_init("lanescope", stdin, stdout, stderr);
    history_ = history_init();
    HistEvent event;
    history(history_, &event, H_SETSIZE, 1000);
    history(history_, &event, H_SETUNIQUE, 1);
    file_ = history_file();
    if (!file_.empty()) history(history_, &event, H_LOAD, file_.c_str());
    el_set(edit_, EL_CLIENTDATA, this);
    el_set(edit_, EL_PROMPT, prompt_of);
    el_set(edit_, EL_EDITOR, "emacs");
    el_set(edit_, EL_GETCFN, read_character);
    el_set(edit_, EL_HIST, history, history_);
    el_set(edit_, EL_ADDFN, "complete", "complete names of tables and columns", complete);
    el_set(edit_, EL_BIND, "\t", "complete", nullptr);
  }
  ~EditedLines() override {
    history_end(history_);
    el_end(edit_);
  }
  EditedLines(const EditedLines&) = delete;
  EditedLines& operator=(const EditedLines&) = delete;

  LineEnd read(const std::string& prompt, std::string& line) override {
    prompt_ = prompt;
    int count = 0;
    const char* const text = el_gets(edit_, &count);
    if (interrupted) {
      el_reset(edit_);
      std::fputs("\n", stdout);
      return LineEnd::kInterrupted;
    }
    if (!text || count <= 0) return LineEnd::kClosed;
    line = text;
    if (line.ends_with('\n')) line.pop_back();
    return LineEnd::kLine;
  }

  void remember(const std::string& statement) override {
    HistEvent event;
    history(history_, &event, H_ENTER, (statement + "\n").c_str());
    if (!file_.empty()) history(history_, &event, H_SAVE, file_.c_str());
  }

 private:
  static EditedLines& of(EditLine* edit) {
    void* self = nullptr;
    el_get(edit, EL_CLIENTDATA, &self);
    return *static_cast<EditedLines*>(self);
  }
  static char* prompt_of(EditLine* edit) { return of(edit).prompt_.data(); }

  static unsigned char complete(EditLine* edit, int /*key*/) {
    const LineInfo* const line = el_line(edit);
    const char* begin = line->cursor;
    while (begin > line->buffer && is_word_byte(begin[-1])) --begin;
    const std::string_view word(begin, static_cast<std::size_t>(line->cursor - begin));
    std::vector<std::string> matches;
    for (const std::string& one : of(edit).words_)
      if (one.starts_with(word)) matches.push_back(one);
    if (matches.empty()) return CC_ERROR;
    std::string common = matches[0];
    for (const std::string& one : matches)
      common.resize(static_cast<std::size_t>(
          std::mismatch(common.begin(), common.end(), one.begin(), one.end()).first -
          common.begin()));
    if (common.size() > word.size()) {
      std::string rest = common.substr(word.size());
      if (matches.size() == 1) rest += ' ';
      el_insertstr(edit, rest.c_str());
      return CC_REFRESH;
    }
    std::string list = "\n";
    for (std::size_t i = 0; i < std::min<std::size_t>(matches.size(), 40); ++i)
      list += matches[i] + "  ";
    std::fputs((list + (matches.size() > 40 ? "...\n" : "\n")).c_str(), stdout);
    return CC_REDISPLAY;
  }

  std::vector<std::string> words_;
  std::string prompt_;
  std::filesystem::path file_;
  EditLine* edit_ = nullptr;
  History* history_ = nullptr;
};

#endif

class PlainLines final : public LineReader {
 public:
  LineEnd read(const std::string& prompt, std::string& line) override {
    std::cout << prompt << std::flush;
    if (std::getline(std::cin, line)) return LineEnd::kLine;
    if (!interrupted) return LineEnd::kClosed;
    std::cin.clear();
    std::clearerr(stdin);
    std::cout << '\n';
    return LineEnd::kInterrupted;
  }
  void remember(const std::string& /*statement*/) override {}
};

}  // namespace

std::unique_ptr<LineReader> make_line_reader(std::vector<std::string> words) {
  take_interrupts();
#if LANESCOPE_HAS_EDIT
  return std::make_unique<EditedLines>(std::move(words));
#else
  static_cast<void>(words);
  return std::make_unique<PlainLines>();
#endif
}

bool was_interrupted() { return interrupted != 0; }
void forget_interrupt() { interrupted = 0; }

}  // namespace lanescope::cli
