// How a program that knows nothing of lanescope gets its GPU recorded: the CUDA driver loads the
// library that an environment variable names, when the program first uses CUDA.
#pragma once
#include <string>
#include <vector>

namespace lanescope::cli {

// liblanescope_record_cupti.so: beside the liblanescope_record.so that this command uses, or where
// a build tree has it. Absolute; "" when this lanescope was built without CUPTI.
std::string find_cupti_library();

inline constexpr char kHowToGetCupti[] =
    "install CUPTI's headers (a CUDA toolkit, or pip install nvidia-cuda-cupti nvidia-cuda-runtime "
    "nvidia-nvtx) and build lanescope again (pip install --no-build-isolation ., or cmake "
    "-DLANESCOPE_WITH_CUPTI=ON)";

// Sets the variables that the driver, NVTX and record_cupti/native_recording.h read, for the
// program that this process becomes. One line for each that is somebody else's already, which stays
// theirs.
std::vector<std::string> set_injection(const std::string& library);

// CUDA_INJECTION64_PATH when it names a library other than ours, else "".
std::string foreign_injection();

// Whether the file is an executable of this machine's kind and not a script. False: cannot be read.
bool is_machine_code(const std::string& path);

// Whether the program is likely to start a Python: a shell or another launcher, or one of its
// arguments is a python or a .py file.
bool may_start_python(const std::string& program, const std::vector<std::string>& arguments);

}  // namespace lanescope::cli
