// The GPUs of this process as JSON, under the names that torch.profiler's deviceProperties has,
// plus an object "lanescope" with what those lack.
#pragma once
#include <string>

#include "lanescope/record_cupti/cupti_library.h"

namespace lanescope::record_cupti {

// "[...]"; "[]" when CUDA is not initialised (it is not initialised here).
std::string devices_json(const CudaDriver& driver);

// While it lives, calls of this thread that a capture in global mode, torch's default, forbids to
// all threads (allocations, as CUPTI makes them) neither fail nor break that capture.
class RelaxedCaptureMode {
 public:
  explicit RelaxedCaptureMode(const CudaDriver& driver);
  ~RelaxedCaptureMode();
  RelaxedCaptureMode(const RelaxedCaptureMode&) = delete;
  RelaxedCaptureMode& operator=(const RelaxedCaptureMode&) = delete;

 private:
  const CudaDriver& driver_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;  // then the thread's own
  bool exchanged_;
};

// Text as a JSON string.
std::string json_text(const std::string& text);

}  // namespace lanescope::record_cupti
