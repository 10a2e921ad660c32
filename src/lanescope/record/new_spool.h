// The file of a new recording: named, and made so that no other recording's files are touched.
#pragma once
#include <memory>

#include "lanescope/base/result.h"
#include "lanescope/record/recorder.h"
#include "lanescope/record/spool.h"

namespace lanescope::record {

// `settings.path` is chosen here, from `options`. A name that another recording has, as .lspool or
// as results (.json, .json.gz, .json.zst, .txt), gets a count: _2, _3, ...; not when the caller
// chose `options.spool_path` without `options.free_name`. kIo: the file cannot be made.
Result<std::unique_ptr<Spool>> create_new_spool(const RecorderOptions& options,
                                                SpoolOptions settings, InternTable* texts);

}  // namespace lanescope::record
