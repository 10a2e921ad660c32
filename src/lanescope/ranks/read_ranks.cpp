#include "lanescope/ranks/read_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <new>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>

#include "lanescope/base/sort_rows.h"
#include "lanescope/ranks/part_file.h"
#include "lanescope/ranks/rank_summary.h"
#include "lanescope/ranks/summary_text.h"

namespace lanescope::ranks {
namespace {

bool file_is_part(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string head(kPartMark.size(), '\0');
  in.read(head.data(), static_cast<std::streamsize>(head.size()));
  return in && is_part(head);
}

std::vector<RankFile> read_part_file(const std::string& path) {
  std::error_code failed;
  if (const auto size = std::filesystem::file_size(path, failed); failed || size > kMostPartBytes)
    return {{path, Error{Errc::kLimit, "the part is too large, or cannot be read"}}};
  std::ifstream in(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  auto rows = read_part(text, path);
  if (!rows) return {{path, rows.error()}};
  return *std::move(rows);
}

std::optional<RankSummary> kept_summary(const KeptText& kept, const std::string& path) {
  if (!kept.text) return std::nullopt;
  Result<RankSummary> summary = read_summary(*kept.text);
  if (!summary) return std::nullopt;
  summary->file = path;  // the same file may have been named in another way
  return *std::move(summary);
}

// A summary whose text says less than itself, because it was too long, would give another answer next time.
void keep_summary(const KeptText& kept, const RankSummary& summary) {
  if (!kept.keep) return;
  const std::string text = write_summary(summary);
  if (const auto again = read_summary(text); again && *again == summary) kept.keep(text);
}

}  // namespace

std::vector<RankFile> read_rank_file(const std::string& path, const ReadRanksOptions& options) {
  try {
    if (file_is_part(path)) return read_part_file(path);
    const KeptText kept = options.keep_summaries ? options.keep_summaries(path) : KeptText();
    if (auto known = kept_summary(kept, path)) return {{path, *std::move(known)}};
    Result<Trace> trace = options.read_trace(path);
    if (!trace) return {{path, trace.error()}};
    Result<RankSummary> summary = summarize_rank(*trace, path);
    if (!summary) return {{path, summary.error()}};
    keep_summary(kept, *summary);
    return {{path, *std::move(summary)}};
  } catch (const std::bad_alloc&) {
    return {
        {path, Error{Errc::kLimit, "expected more free memory than there is to read this file"}}};
  }
}

std::vector<std::size_t> largest_first(const std::vector<std::string>& paths) {
  std::vector<std::uintmax_t> sizes;
  for (const std::string& path : paths) {
    std::error_code failed;
    const std::uintmax_t size = std::filesystem::file_size(path, failed);
    sizes.push_back(failed ? 0 : size);
  }
  std::vector<std::size_t> order(paths.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  sort_rows(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return sizes[a] > sizes[b]; });
  return order;
}

std::vector<RankFile> read_rank_files(const std::vector<std::string>& paths,
                                      const ReadRanksOptions& options) {
  const std::vector<std::size_t> order = largest_first(paths);
  std::vector<std::vector<RankFile>> found(paths.size());
  std::atomic<std::size_t> next{0};
  std::mutex report;
  std::size_t done = 0;
  const auto work = [&] {
    // Relaxed: the counter only hands out indices; join() publishes the results.
    for (std::size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < order.size();) {
      found[order[i]] = read_rank_file(paths[order[i]], options);
      const std::scoped_lock lock(report);
      ++done;
      if (options.progress) options.progress(done, paths.size());
    }
  };
  const std::size_t workers =
      std::clamp<std::size_t>(options.workers, 1, std::max<std::size_t>(1, paths.size()));
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < workers; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  std::vector<RankFile> out;
  for (auto& files : found) std::move(files.begin(), files.end(), std::back_inserter(out));
  return out;
}

}  // namespace lanescope::ranks
