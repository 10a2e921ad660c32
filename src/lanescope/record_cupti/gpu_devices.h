// The GPUs of this process as JSON, with the names of torch.profiler's deviceProperties, and an
// object "lanescope" with more properties.
#pragma once
#include <string>

#include "lanescope/record_cupti/cupti_library.h"

namespace lanescope::record_cupti {

// "[...]"; "[]": CUDA is not initialised (this does not initialise it).
std::string devices_json(const CudaDriver& driver);

// A graph capture in global mode, torch's default, forbids some calls in all threads, such as
// CUPTI's allocations. While this object lives, such calls of this thread neither fail nor
// break the capture.
class RelaxedCaptureMode {
 public:
  explicit RelaxedCaptureMode(const CudaDriver& driver);
  ~RelaxedCaptureMode();
  RelaxedCaptureMode(const RelaxedCaptureMode&) = delete;
  RelaxedCaptureMode& operator=(const RelaxedCaptureMode&) = delete;

 private:
  const CudaDriver& driver_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;  // later: the thread's earlier mode
  bool exchanged_;
};

// "GPU-" and the number, as nvidia-smi writes it.
std::string gpu_uuid_text(const CUuuid& uuid);

// Text as a JSON string.
std::string json_text(const std::string& text);

}  // namespace lanescope::record_cupti
