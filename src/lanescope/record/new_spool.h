// Names and makes the file of a new recording, without touching files of other recordings.
#pragma once
#include <memory>

#include "lanescope/base/result.h"
#include "lanescope/record/recorder.h"
#include "lanescope/record/spool.h"

namespace lanescope::record {

// Chooses `settings.path` from `options`. If another recording (.lspool) or its results (.json,
// .json.gz, .json.zst, .txt) have that name already, the name gets a count: _2, _3, ... But if the
// caller chose `options.spool_path` without `options.free_name`, a taken name is an error. kIo: the
// file cannot be made.
Result<std::unique_ptr<Spool>> create_new_spool(const RecorderOptions& options,
                                                SpoolOptions settings, InternTable* texts);

}  // namespace lanescope::record
