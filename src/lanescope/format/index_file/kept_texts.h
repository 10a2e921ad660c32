// Keeps small texts that were made of trace files in the user's cache folder: the summaries of a job's
// ranks. For traces that are too many to have an index each.
#pragma once
#include <cstdint>
#include <string>

#include "lanescope/base/kept_text.h"
#include "lanescope/format/index_file/open_indexed.h"

namespace lanescope::format {

struct KeptTextOptions {
  std::string kind;     // what the texts are: "ranks"
  std::string version;  // of the sources that make them; a text of another version is not used
  std::uint64_t most_text_bytes = 256 * 1024;  // a longer text is not kept
  std::uint64_t write_from_bytes =
      64 * 1024;  // of a shorter file nothing is kept: it is read as fast
  std::uint64_t most_cache_bytes = 1'000'000'000;  // of all texts together; the oldest go first
};

// A text is used only if this build made it and its own hash is right. The file must also have the size, time and hash that it
// had (describe_source()), and the text's file must be the user's, with nobody else allowed to write it. What the text means
// still has to be checked. Empty without a cache folder and with IndexUse::kOff; writes only with IndexUse::kAutomatic.
// Cost: as describe_source(), and reading the text.
KeepTexts keep_texts(const KeptTextOptions& options, const IndexOptions& index);
// With index_options_from_environment(); a wrong LANESCOPE_INDEX keeps nothing.
KeepTexts keep_texts(const KeptTextOptions& options);

}  // namespace lanescope::format
