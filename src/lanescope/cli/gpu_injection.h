// Records the GPU of a program that knows nothing of lanescope: when the program first uses CUDA,
// the driver loads the library that an environment variable names.
#pragma once
#include <string>
#include <vector>

namespace lanescope::cli {

// liblanescope_record_cupti.so: next to the liblanescope_record.so of this command, or in its place
// in a build tree. An absolute path; "": this lanescope was built without CUPTI.
std::string find_cupti_library();

inline constexpr char kHowToGetCupti[] =
    "install CUPTI's headers (a CUDA toolkit, or pip install nvidia-cuda-cupti nvidia-cuda-runtime "
    "nvidia-nvtx) and build lanescope again (pip install --no-build-isolation ., or cmake "
    "-DLANESCOPE_WITH_CUPTI=ON)";

// Sets the variables that the driver, NVTX and record_cupti/native_recording.h read, for the
// program that this process becomes. If a variable already names another library, keeps it and
// returns a line that says so.
std::vector<std::string> set_injection(const std::string& library);

// CUDA_INJECTION64_PATH if it names another library, else "".
std::string foreign_injection();

// Whether the file is an ELF file, and not a script. Also false if it cannot be read.
bool is_machine_code(const std::string& path);

// Whether the program is likely to start a Python: a shell, another launcher or a script, or one
// of its arguments is a python or a .py file.
bool may_start_python(const std::string& program, const std::vector<std::string>& arguments);

}  // namespace lanescope::cli
