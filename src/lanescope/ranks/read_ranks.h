// Reads the files of a job with several threads: one summary a file, or the reason why there is none.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "lanescope/base/kept_text.h"
#include "lanescope/base/result.h"
#include "lanescope/model/trace.h"
#include "lanescope/ranks/job.h"

namespace lanescope::ranks {

struct ReadRanksOptions {
  std::size_t workers = 1;  // at least 1
  // How a trace is read: format::read_trace(), which this folder may not include. Any thread.
  std::function<Result<Trace>(const std::string& path)> read_trace;
  // Keeps the summary of a file (write_summary()) for the next time: format::keep_texts(). May be empty. A kept
  // summary is checked like a part file. If anything is wrong with it, the file is read.
  KeepTexts keep_summaries;
  // Called after each file with how many are done; by one thread at a time.
  std::function<void(std::size_t done, std::size_t total)> progress;
};

// One file: its summary, all summaries of a part file, or why there is none. Any thread.
std::vector<RankFile> read_rank_file(const std::string& path, const ReadRanksOptions& options);

// Indices into `paths`, the largest file first, so that none is read alone at the end.
std::vector<std::size_t> largest_first(const std::vector<std::string>& paths);

// In the order of `paths`, whatever thread read which: the result is the same for any number of
// workers. Part files add several. Memory: one trace a worker, and the summaries. Never fails as a whole.
std::vector<RankFile> read_rank_files(const std::vector<std::string>& paths,
                                      const ReadRanksOptions& options);

}  // namespace lanescope::ranks
