// Records torch.add(torch.matmul(x, w), b) from C++ with libtorch: the same
// program as matmul_add.py.
//
// Three things are lanescope's: the observer is installed once, the Profiler steps with the loop,
// and LANESCOPE_RECORD_FUNCTION names a range. Everything else is a program that uses libtorch.
#ifndef NDEBUG
#define NDEBUG  // as the released torch was built
#endif
#include <ATen/Tensor.h>
#include <ATen/ops/add.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <c10/core/InferenceMode.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "lanescope/profiler.h"
#include "lanescope/record_torch/torch_observer.h"

namespace {

struct Options {
  std::int64_t size = 64;
  std::int64_t batch = 0;
  std::string dtype = "fp32";
  std::string device = "cpu";
  std::string out = "traces/01_matmul_add";
  std::int64_t active = 3;
  bool warmup = false;
};

const std::map<std::string, at::ScalarType>& dtypes() {
  static const std::map<std::string, at::ScalarType> types = {
      {"bf16", at::kBFloat16}, {"fp16", at::kHalf}, {"fp32", at::kFloat}, {"fp64", at::kDouble}};
  return types;
}

at::Tensor matmul_add(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b) {
  return at::add(at::matmul(x, w), b);
}

int fail(const char* what, const lanescope::Error& error) {
  std::fprintf(stderr, "matmul_add: %s: %s\n", what, error.message.c_str());
  return 1;
}

int run(const Options& options) {
  const c10::InferenceMode no_autograd;
  const at::TensorOptions tensor_options =
      at::TensorOptions(dtypes().at(options.dtype)).device(c10::Device(options.device));
  std::vector<std::int64_t> shape{options.size, options.size};
  if (options.batch > 0) shape.insert(shape.begin(), options.batch);
  const at::Tensor x = at::randn(shape, tensor_options), w = at::randn(shape, tensor_options),
                   b = at::randn(shape, tensor_options);
  const auto run_step = [&] {
    LANESCOPE_RECORD_FUNCTION("matmul_add");
    return matmul_add(x, w, b);
  };

  char why_not[512] = "";
  if (lanescope_torch_observer_install(why_not, sizeof why_not) != 0)
    std::fprintf(stderr, "matmul_add: torch operators are not recorded: %s\n", why_not);

  if (options.warmup) {
    for (int i = 0; i < 3; ++i) run_step();
  }
  const lanescope::ScheduleOptions cycle = {
      .wait = 1, .warmup = 1, .active = options.active, .repeat = 1};
  auto schedule = lanescope::schedule(cycle);
  if (!schedule) return fail("--active", schedule.error());
  lanescope::ProfilerOptions profiler_options;
  profiler_options.schedule = *schedule;
  lanescope::Profiler profiler(profiler_options);
  if (auto started = profiler.start(); !started)
    return fail("the profiler did not start", started.error());
  for (std::int64_t step = 0; step < cycle.wait + cycle.warmup + cycle.active; ++step) {
    run_step();
    profiler.step();
  }
  profiler.stop();
  for (const std::string& line : profiler.warnings())
    std::fprintf(stderr, "lanescope: %s\n", line.c_str());

  const std::string size =
      options.batch > 0 ? "b" + std::to_string(options.batch) + "x" + std::to_string(options.size)
                        : std::to_string(options.size);
  const std::string path = options.out + "/" + size + "_" + options.dtype +
                           (options.warmup ? "_warm" : "_cold") + "_eager";
  std::error_code ignored;  // the export says why, if the directory cannot be made
  std::filesystem::create_directories(options.out, ignored);
  if (auto exported = profiler.export_chrome_trace(path + ".json"); !exported)
    return fail("no trace was written", exported.error());
  lanescope::report::TableOptions table_options;
  table_options.sort_by = "cpu_time_total";
  table_options.row_limit = 15;
  const auto averages = profiler.key_averages();
  if (!averages) return fail("nothing was recorded", averages.error());
  const auto table = averages->table(table_options);
  if (!table) return fail("there is no table", table.error());
  std::ofstream(path + ".txt") << *table;
  std::printf("%s\ntrace  %s.json\ntable  %s.txt\nrecorded by lanescope, torch %s, %s\n",
              table->c_str(), path.c_str(), path.c_str(), lanescope_torch_observer_built_for(),
              options.device.c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app(
      "Record matmul + add with lanescope.\n"
      "Writes OUT/<size>_<dtype>_<cold|warm>_eager.json (the trace) and .txt (the table). There is "
      "no --compile:\n"
      "torch.compile belongs to Python, see matmul_add.py.");
  app.add_option("--size", options.size, "rows and columns of the square matrices")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--batch", options.batch, "matrices multiplied at once; 0: plain matrices")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  std::vector<std::string> names;
  for (const auto& [name, type] : dtypes()) names.push_back(name);
  app.add_option("--dtype", options.dtype, "element type")
      ->capture_default_str()
      ->check(CLI::IsMember(names));
  app.add_flag("--warmup", options.warmup,
               "run a few times before recording: warm instead of cold");
  app.add_option("--active", options.active, "steps that are recorded")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--device", options.device, "cpu or cuda")->capture_default_str();
  app.add_option("--out", options.out, "directory for the results")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    return run(options);
  } catch (const std::exception& error) {  // torch's, for example: no CUDA device
    std::fprintf(stderr, "matmul_add: %s\n", error.what());
    return 2;
  }
}
