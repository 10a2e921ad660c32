// Where the Python package `lanescope` lies for the Python that a program will run in: `lanescope
// record` needs it.
#pragma once
#include <string>
#include <vector>

#include "lanescope/base/result.h"

namespace lanescope::cli {

// The file that execvp would run, or an error that says what is wrong with it (no such program, not
// executable, a folder).
Result<std::string> find_program(const std::string& name);

// The Python that `program` is: itself when it is called python*, the one its "#!" line names
// (torchrun, pytest), "" for any other program.
Result<std::string> python_named_by(const std::string& program);

// That, else the one that it may start: python3 from the PATH. kUnavailable when there is none.
Result<std::string> python_of(const std::string& program);

// The folder lanescope/_inject of the package that `python` imports: its own, else one that lies
// beside this executable (a wheel, a build tree) if that Python can load it. Starts `python` once
// or twice, a tenth of a second each. kUnavailable, with what Python said, when it can import
// neither.
Result<std::string> find_inject_folder(const std::string& python);

// What a Python prints (standard output and error, at most 64 KiB) when it runs `code` with the
// current directory left out of its search path, behind the line "lanescope-answer:"; an error with
// its last line when it ends with anything but 0.
Result<std::string> ask_python(const std::string& python, const std::string& code);

// The flag among `arguments` (of a python) that keeps PYTHONPATH or start-up files from being used,
// or "".
std::string isolating_flag(const std::vector<std::string>& arguments);

}  // namespace lanescope::cli
