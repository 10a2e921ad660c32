// Spools in few bytes, for fuzzing: a chunk is 128 KiB and mostly zeroes, so inputs hold only what
// is used of each, and checksums are made when the spool is unfolded.
//
//   input = flags:u8 block*
//   block = size:u16 bytes     (little-endian; the last block may be shorter)
// The first block is the start of the file header, each other one that of a chunk: its header, then
// its payload. make_corpus.py folds real spools so.
#pragma once
#include <string>
#include <string_view>

#include "fuzz_support.h"

namespace lanescope::fuzz {

enum SpoolFlag : unsigned char {
  kAsItIs = 1,    // magic numbers and checksums stay as the blocks have them
  kCut = 2,       // the file ends inside the last chunk, or before it
  kLive = 4,      // read as the writing process reads it
  kRawBytes = 8,  // what follows the flags is the file itself
};

// The whole spool. At most 24 chunks. The view ends with the next call.
std::string_view unfold_spool(std::string_view input);

// One to four of: fields of records, headers and thread slots at their edges or taken from another
// record; records and chunks copied, moved or taken out. Any bytes.
std::string mutate_spool(std::string_view input, Random& random);

}  // namespace lanescope::fuzz
