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

// The Python that `program` will start: itself when it is called python*, the one its "#!" line
// names (torchrun, pytest), else python3 from the PATH. kUnavailable when there is none.
Result<std::string> python_of(const std::string& program);

// The folder lanescope/_inject of the package that `python` imports: its own, else one that lies
// beside this executable (a wheel, a build tree) if that Python can load it. Starts `python` once
// or twice, a tenth of a second each. kUnavailable, with what Python said, when it can import
// neither.
Result<std::string> find_inject_folder(const std::string& python);

// The flag among `arguments` (of a python) that keeps PYTHONPATH or start-up files from being used,
// or "".
std::string isolating_flag(const std::vector<std::string>& arguments);

}  // namespace lanescope::cli
