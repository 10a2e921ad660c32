#include "lanescope/sample/descendants.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <memory>
#include <string>
#include <string_view>

namespace lanescope::sample {
namespace {

constexpr std::size_t kMostTasks = 4096;  // of a process

void add_numbers(std::string_view text, std::size_t most, std::vector<pid_t>* out) {
  while (out->size() < most) {
    const std::size_t begin = text.find_first_of("0123456789");
    if (begin == text.npos) return;
    text.remove_prefix(begin);
    pid_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc() && number > 0) out->push_back(number);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  }
}

// The children that a thread started: "4711 4712 ".
void add_children(const std::string& path, std::size_t most, std::vector<pid_t>* out) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  std::string text;
  char part[4096];
  for (ssize_t got = 0; (got = read(file, part, sizeof part)) > 0 && text.size() < 16 * most;)
    text.append(part, static_cast<std::size_t>(got));
  close(file);
  add_numbers(text, most, out);
}

}  // namespace

std::vector<pid_t> find_descendants(pid_t process, std::size_t most) {
  std::vector<pid_t> found;
  pid_t parent = process;
  for (std::size_t next = 0;; parent = found[next++]) {
    const std::string tasks = fmt::format("/proc/{}/task", parent);
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(tasks.c_str()), closedir);
    std::size_t threads = 0;
    while (folder && threads < kMostTasks) {
      const dirent* const entry = readdir(folder.get());
      if (!entry) break;
      if (entry->d_name[0] == '.') continue;
      ++threads;
      add_children(fmt::format("{}/{}/children", tasks, entry->d_name), most, &found);
    }
    if (next == found.size()) return found;
  }
}

}  // namespace lanescope::sample
