#include "lanescope/cli/hardware_process.h"

#include <dlfcn.h>

#include <charconv>
#include <cstdint>
#include <cstdio>

#include "lanescope/cli/gpu_injection.h"
#include "lanescope/record_cupti/hardware_sampler.h"

namespace lanescope::cli {
namespace {

constexpr std::uint64_t kSlowIntervalNs = 100'000'000;

int print_none(const std::string& why) {
  std::printf("none: %s\n", why.c_str());
  return 1;
}

bool parse(const std::string& text, std::uint64_t* into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *into);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

int run_hardware_process(const std::vector<std::string>& arguments) {
  LanescopeHardwareOptions options{};
  if (arguments.size() != 4 || !parse(arguments[1], &options.interval_ns) ||
      !parse(arguments[3], &options.most_bytes) || options.interval_ns == 0)
    return print_none("expected FILE INTERVAL_NS DEVICES MOST_BYTES");
  options.path = arguments[0].c_str();
  options.devices = arguments[2].c_str();
  options.slow_interval_ns = kSlowIntervalNs;
  const std::string path = find_cupti_library();
  if (path.empty())
    return print_none(std::string("this lanescope was built without CUPTI; ") + kHowToGetCupti);
  void* library = dlopen(path.c_str(), RTLD_NOW);
  const auto main = library ? reinterpret_cast<decltype(&lanescope_hardware_main)>(
                                  dlsym(library, "lanescope_hardware_main"))
                            : nullptr;
  if (!main) return print_none(path + " belongs to another version of lanescope");
  return main(&options);
}

}  // namespace lanescope::cli
