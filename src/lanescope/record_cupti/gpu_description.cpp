#include "lanescope/record_cupti/gpu_description.h"

#include "lanescope/record_cupti/cupti_library.h"
#include "lanescope/record_cupti/gpu_devices.h"

namespace lanescope::record_cupti {

std::string describe_gpu_recording() {
  std::string problem;
  const CudaDriver* driver = find_driver(&problem);
  if (driver) {
    if (const CUresult result = driver->cuInit(0); result != CUDA_SUCCESS) {
      problem = "CUDA could not be initialised (cuInit answered " +
                std::to_string(static_cast<int>(result)) + ")";
    }
  }
  std::string line;
  const CuptiLibrary* cupti = find_cupti(&line);
  if (!cupti && problem.empty()) problem = line;
  std::string subscriber = "unknown";
  if (cupti && driver && problem.empty()) {
    CUpti_SubscriberHandle handle = nullptr;
    const CUptiResult taken = cupti->cuptiSubscribe(&handle, nullptr, nullptr);
    if (taken == CUPTI_SUCCESS) {
      cupti->cuptiUnsubscribe(handle);
      subscriber = "free";
    } else {
      const char* text = nullptr;
      cupti->cuptiGetResultString(taken, &text);
      subscriber = text ? text : "taken";
    }
  }
  return "{\"cupti_library\": " + (cupti ? json_text(cupti->path) : std::string("null")) +
         ", \"cupti_version\": " + std::to_string(cupti ? cupti->version : 0) +
         ", \"driver_version\": " + std::to_string(driver ? driver->version : 0) +
         ", \"subscriber\": " + json_text(subscriber) +
         ", \"problem\": " + (problem.empty() ? std::string("null") : json_text(problem)) +
         ", \"devices\": " + (driver ? devices_json(*driver) : std::string("[]")) + "}";
}

}  // namespace lanescope::record_cupti
