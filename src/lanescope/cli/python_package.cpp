#include "lanescope/cli/python_package.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace lanescope::cli {
namespace {
namespace fs = std::filesystem;

struct PythonOutput {
  int code = -1;
  std::string out;  // standard output and error, together, at most 64 KiB
};

// Runs it without a shell. `python_path` replaces PYTHONPATH unless empty.
PythonOutput run_python(const std::string& python, const char* code,
                        const std::string& python_path) {
  int pipe_ends[2];
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) return {};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], 1);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], 2);
  std::vector<std::string> words = {python, "-c", code};
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (python_path.empty() || std::strncmp(*entry, "PYTHONPATH=", 11) != 0)
      environment.emplace_back(*entry);
  }
  if (!python_path.empty()) environment.push_back("PYTHONPATH=" + python_path);
  std::vector<char*> argv, envp;
  for (std::string& word : words) argv.push_back(word.data());
  for (std::string& entry : environment) envp.push_back(entry.data());
  argv.push_back(nullptr);
  envp.push_back(nullptr);
  pid_t child = 0;
  const int failed =
      posix_spawn(&child, python.c_str(), &actions, nullptr, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  ::close(pipe_ends[1]);
  PythonOutput said;
  constexpr std::size_t kMost = std::size_t{1} << 16U;
  char buffer[4096];
  for (ssize_t got = 1; failed == 0 && got != 0;) {
    got = ::read(pipe_ends[0], buffer, sizeof buffer);
    if (got < 0 && errno != EINTR) break;
    if (got > 0 && said.out.size() < kMost) said.out.append(buffer, static_cast<std::size_t>(got));
  }
  ::close(pipe_ends[0]);
  if (failed != 0) {
    said.out = std::strerror(failed);
    return said;
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  said.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return said;
}

std::string last_line(std::string_view text) {
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  const std::size_t at = text.rfind('\n');
  return std::string(at == std::string_view::npos ? text : text.substr(at + 1));
}

// Leaves the current directory out of the search, as for start-up files: a folder `lanescope` there
// is not the package. The marker separates the answer from what start-up files may print.
constexpr char kAskPackage[] =
    "import sys\n"
    "sys.path[:] = [entry for entry in sys.path if entry]\n"
    "import os, lanescope\n"
    "if lanescope.__file__ is None: raise ImportError('no lanescope package, only a folder of that "
    "name')\n"
    "print('\\nlanescope-package:' + os.path.dirname(os.path.abspath(lanescope.__file__)))\n";

// The package folder; or "", and `why` is what Python printed.
std::string ask_package(const std::string& python, const std::string& python_path,
                        std::string* why) {
  const PythonOutput said = run_python(python, kAskPackage, python_path);
  constexpr std::string_view kMarker = "\nlanescope-package:";
  const std::size_t at = said.out.rfind(kMarker);
  if (said.code == 0 && at != std::string::npos) {
    const std::size_t begin = at + kMarker.size();
    return said.out.substr(begin, said.out.find('\n', begin) - begin);
  }
  *why = last_line(said.out);
  return "";
}

std::vector<std::string> folders_next_to_executable() {
  std::error_code failed;
  const fs::path bin = fs::read_symlink("/proc/self/exe", failed).parent_path();
  if (failed) return {};
  std::vector<std::string> found;
  const auto offer = [&](const fs::path& root) {
    std::error_code ignored;
    if (fs::is_directory(root / "lanescope" / "_inject", ignored)) found.push_back(root.string());
  };
  // A wheel: <prefix>/bin and <prefix>/lib/pythonX.Y/*-packages.
  for (const char* lib : {"lib", "lib64"}) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(bin.parent_path() / lib, ignored)) {
      if (!entry.path().filename().string().starts_with("python")) continue;
      offer(entry.path() / "site-packages");
      offer(entry.path() / "dist-packages");
    }
  }
  // `pip install --target`, then a build tree: <build>/src/lanescope/cli and <build>/python.
  offer(bin.parent_path());
  offer(bin.parent_path().parent_path().parent_path() / "python");
  return found;
}

bool is_python_name(std::string_view name) {
  return name.starts_with("python") || name.starts_with("pypy");
}

}  // namespace

Result<std::string> find_program(const std::string& name) {
  std::error_code failed;
  const auto usable = [&](const fs::path& path) {
    return fs::is_regular_file(path, failed) && access(path.c_str(), X_OK) == 0;
  };
  if (name.find('/') != std::string::npos) {
    if (usable(name)) return name;
    const char* problem =
        fs::is_directory(name, failed) ? "a folder"
        : fs::exists(name, failed)
            ? "a file that may not be executed (chmod +x, or put python3 before it)"
            : "no such file";
    return Error{Errc::kInvalidArgument,
                 fmt::format("expected a program to run, found {}: '{}'", problem, name)};
  }
  const char* path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin";
  while (!name.empty()) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    const fs::path candidate = fs::path(folder.empty() ? "." : folder) / name;
    if (usable(candidate)) return candidate.string();
    if (folder.size() == rest.size()) break;
    rest.remove_prefix(folder.size() + 1);
  }
  const bool is_script = name.ends_with(".py");
  return Error{
      Errc::kInvalidArgument,
      fmt::format(
          "expected a program to run, found no '{}' in the PATH{}", name,
          is_script ? fmt::format("; for a script: lanescope record -- python3 {}", name) : "")};
}

Result<std::string> python_named_by(const std::string& program) {
  if (is_python_name(fs::path(program).filename().string())) return program;
  std::ifstream file(program, std::ios::binary);
  std::string line(256, '\0');
  file.read(line.data(), static_cast<std::streamsize>(line.size()));
  line.resize(static_cast<std::size_t>(file.gcount()));
  line = line.substr(0, line.find('\n'));
  if (line.starts_with("#!")) {
    std::vector<std::string> words;
    for (std::size_t at = 2; at < line.size();) {
      const std::size_t begin = line.find_first_not_of(" \t", at);
      if (begin == std::string::npos) break;
      at = std::min(line.find_first_of(" \t\r", begin), line.size());
      words.push_back(line.substr(begin, at - begin));
    }
    for (const std::string& word :
         words) {  // "/usr/bin/env python3" names it second, "env -S" third
      if (is_python_name(fs::path(word).filename().string())) return find_program(word);
    }
  }
  return std::string();
}

Result<std::string> python_of(const std::string& program) {
  LANESCOPE_TRY(const std::string named, python_named_by(program));
  if (!named.empty()) return named;
  if (Result<std::string> python = find_program("python3")) return python;
  return Error{Errc::kUnavailable,
               "expected a Python that the program may start, found no 'python3' in the PATH"};
}

Result<std::string> find_inject_folder(const std::string& python) {
  std::string why;
  std::string package = ask_package(python, "", &why);
  if (package.empty()) {
    for (const std::string& root : folders_next_to_executable()) {
      const char* before = std::getenv("PYTHONPATH");
      const std::string path = before != nullptr && *before != '\0' ? root + ":" + before : root;
      package = ask_package(python, path, &why);
      if (!package.empty()) break;
    }
  }
  if (package.empty()) {
    return Error{Errc::kUnavailable,
                 fmt::format("expected the Python package lanescope in {}, found none ({}); "
                             "do: {} -m pip install <the folder of lanescope's source>",
                             python, why, python)};
  }
  const std::string folder = package + "/_inject";
  std::error_code failed;
  if (fs::is_directory(folder, failed)) return folder;
  return Error{Errc::kUnavailable,
               fmt::format("expected '{}', which belongs to the package lanescope, found none; "
                           "install the package again",
                           folder)};
}

Result<std::string> ask_python(const std::string& python, const std::string& code) {
  const std::string whole =
      "import sys\nsys.path[:] = [entry for entry in sys.path if entry]\n"
      "print('\\nlanescope-answer:')\n" +
      code;
  const PythonOutput said = run_python(python, whole.c_str(), "");
  constexpr std::string_view kMarker = "\nlanescope-answer:\n";
  const std::size_t at = said.out.rfind(kMarker);
  if (said.code != 0 || at == std::string::npos)
    return Error{Errc::kUnavailable, fmt::format("{}: {}", python, last_line(said.out))};
  return said.out.substr(at + kMarker.size());
}

bool clears_environment(const std::vector<std::string>& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word == "-" || word == "-i" || word == "--ignore-environment") return true;
    if (word == "-u" || word == "--unset" || word == "-C" || word == "--chdir")
      ++i;
    else if (!word.starts_with('-') && word.find('=') == word.npos)
      return false;
  }
  return false;
}

std::string isolating_flag(const std::vector<std::string>& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word.size() < 2 || word[0] != '-' || word == "--") return "";
    if (word.starts_with("--")) continue;
    for (std::size_t at = 1; at < word.size(); ++at) {
      const char flag = word[at];
      if (flag == 'I' || flag == 'E' || flag == 'S') return std::string("-") + flag;
      if (flag == 'c' || flag == 'm') return "";
      if (flag == 'W' || flag == 'X') {  // the rest of the word, or the next word, is its value
        if (at + 1 == word.size()) ++i;
        break;
      }
    }
  }
  return "";
}

}  // namespace lanescope::cli
