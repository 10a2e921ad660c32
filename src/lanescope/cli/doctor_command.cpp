// `lanescope doctor`: which parts of recording work on this machine, and what to do
// about the others.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "lanescope/cli/command_line.h"
#include "lanescope/cli/doctor_checks.h"
#include "lanescope/cli/gpu_injection.h"
#include "lanescope/cli/python_package.h"
#include "lanescope/report/json_writer.h"

namespace lanescope::cli {
namespace {

struct DoctorFlags {
  std::string python;
  bool json = false;
};

std::vector<Check> python_checks(const std::string& wanted) {
  const Result<std::string> python = find_program(wanted.empty() ? "python3" : wanted);
  if (python) return check_python(*python);
  // A user who names one expects it to work.
  return {{"python", wanted.empty() ? Health::kNote : Health::kProblem,
           wanted.empty() ? "no python3 in the PATH; programs without Python can be recorded"
                          : python.error().message}};
}

std::string as_json(const std::vector<Check>& checks, const GpuReport& gpu, bool works) {
  report::JsonWriter json("doctor");
  json.boolean("works", works);
  json.begin_array("checks");
  for (const Check& check : checks) {
    json.begin_object()
        .text("name", check.name)
        .text("health", health_word(check.health))
        .text("text", check.text)
        .text("remedy", check.remedy)
        .end_object();
  }
  json.end_array();
  json.begin_object("gpu")
      .integer("driver_version", gpu.driver_version)
      .text("cupti_library", gpu.cupti_path)
      .integer("cupti_version", gpu.cupti_version)
      .boolean("probed", gpu.probed)
      .integer("probe_kernel_count", gpu.kernel_count)
      .integer("probe_api_call_count", gpu.api_call_count)
      .integer("probe_kernel_ns", gpu.kernel_ns);
  json.begin_array("devices");
  for (const GpuDevice& device : gpu.devices) {
    json.begin_object()
        .text("name", device.name)
        .integer("memory_bytes", device.memory_bytes)
        .integer("compute_major", device.compute_major)
        .integer("compute_minor", device.compute_minor)
        .boolean("is_mig", device.is_mig)
        .end_object();
  }
  json.end_array().end_object();
  return json.take();
}

std::string as_text(const std::vector<Check>& checks, bool works) {
  std::string out;
  for (const Check& check : checks) {
    out += fmt::format("{:<8} {:<12} {}", health_word(check.health), check.name, check.text);
    if (!check.remedy.empty()) out += "; do: " + check.remedy;
    out += "\n";
  }
  const auto problems = std::count_if(checks.begin(), checks.end(), [](const Check& check) {
    return check.health == Health::kProblem;
  });
  out += works ? "what is here works\n"
               : fmt::format("{} problem{}\n", problems, problems == 1 ? "" : "s");
  return out;
}

int run_doctor(const DoctorFlags& flags, Output& output) {
  // First, because it forks: this process has no threads yet.
  const std::string library = find_cupti_library();
  const GpuReport gpu = look_at_gpu(library);
  std::vector<Check> checks = {check_recorder(), check_disk(), check_clock()};
  const auto add = [&](std::vector<Check> more) {
    checks.insert(checks.end(), more.begin(), more.end());
  };
  add(check_gpu(gpu, library));
  add({check_other_tools()});
  add(python_checks(flags.python));
  const bool works = std::none_of(checks.begin(), checks.end(), [](const Check& check) {
    return check.health == Health::kProblem;
  });
  output.write(flags.json ? as_json(checks, gpu, works) : as_text(checks, works));
  return works ? kOk : kFailed;
}

}  // namespace

void add_doctor_command(CommandLine& line) {
  Command command = line.command(
      "doctor", "which parts of recording work on this machine, and what to do about the others");
  const auto flags = std::make_shared<DoctorFlags>();
  command.text_flag("--python", &flags->python, "PYTHON",
                    "the Python whose package and torch are checked (default: python3 of the PATH)",
                    {Completes::kCommand});
  command.switch_flag("--json", &flags->json, "JSON: docs/formats/json_output.md");
  command.epilogue(R"(Examples:
  lanescope doctor
  lanescope doctor --python .venv/bin/python --json

Prints one line per check: ok, note or problem; what was found; what to do. If there is a GPU, doctor starts a short
kernel, records it, and looks for it in the recording. It changes nothing.
The exit code is 1 if something that should work here does not. A machine without a GPU is no problem.
)");
  command.runs([flags](Output& output) -> int { return run_doctor(*flags, output); });
}

}  // namespace lanescope::cli
