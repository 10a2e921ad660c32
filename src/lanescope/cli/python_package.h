// Finds the package `lanescope` of the Python that will run a program, for `lanescope record`.
#pragma once
#include <string>
#include <vector>

#include "lanescope/base/result.h"

namespace lanescope::cli {

// The file that execvp would run, or an error that says what is wrong (no such program, not
// executable, a folder).
Result<std::string> find_program(const std::string& name);

// The Python that runs `program`: itself if it is called python*, the one in its "#!" line
// (torchrun, pytest), else "".
Result<std::string> python_named_by(const std::string& program);

// That, else the one that it may start: python3 from the PATH. kUnavailable: none.
Result<std::string> python_of(const std::string& program);

// The folder lanescope/_inject of the package that `python` imports: its installed one, else
// the one next to this executable (a wheel, a build tree) if that Python can load it. Starts
// `python` once or twice, a tenth of a second each. kUnavailable, with Python's message: it
// can import neither.
Result<std::string> find_inject_folder(const std::string& python);

// Runs `code` in Python, without the current directory in its search path, and returns what it
// prints (standard output and error, at most 64 KiB) after the line "lanescope-answer:". If its
// exit code is not 0: an error with its last line.
Result<std::string> ask_python(const std::string& python, const std::string& code);

// The flag in `arguments` (of a python) that disables PYTHONPATH or start-up files, or "".
std::string isolating_flag(const std::vector<std::string>& arguments);

// True: `env` with these arguments starts its program without our environment (-i).
bool clears_environment(const std::vector<std::string>& arguments);

}  // namespace lanescope::cli
