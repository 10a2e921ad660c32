#include "lanescope/format/kineto_json/document_text.h"

#include <cstddef>
#include <string_view>
#include <utility>

namespace lanescope::format {

DocumentText::DocumentText(codec::UnpackedSource& source, const ReadOptions& options,
                           ImportStats& stats)
    : source_(source),
      options_(options),
      stats_(stats),
      window_(source, options.window_bytes, static_cast<std::size_t>(options.max_event_bytes)) {}

bool DocumentText::grow() {
  const bool grown = window_.grow();
  if (options_.progress) options_.progress(source_.done_bytes(), source_.total_bytes());
  return grown;
}

int DocumentText::next() {
  for (;;) {
    const std::string_view text = window_.text();
    std::size_t at = 0;
    while (at < text.size() &&
           (text[at] == ' ' || text[at] == '\n' || text[at] == '\r' || text[at] == '\t'))
      ++at;
    window_.consume(at);
    if (at < text.size()) return static_cast<unsigned char>(text[at]);
    if (!grow() && window_.text().empty()) return kEnd;
  }
}

codec::MendResult DocumentText::mend() {
  for (;;) {
    const codec::MendResult result = codec::mend_json(window_.text(), window_.at_end(), mended_);
    mend_work_ += result.used;
    if (result.status != codec::MendStatus::kNeedMore || !grow()) return result;
  }
}

void DocumentText::count(const codec::Mends& mends) {
  static constexpr std::pair<codec::Mend, ImportIssue> kIssues[] = {
      {codec::Mend::kText, ImportIssue::kUnescapedText},
      {codec::Mend::kUtf8, ImportIssue::kInvalidUtf8},
      {codec::Mend::kNotANumber, ImportIssue::kNotANumber},
      {codec::Mend::kSyntax, ImportIssue::kSyntax},
  };
  for (const auto& [mend, issue] : kIssues)
    if (mends[mend].count > 0)
      stats_.count(issue, window_.offset() + mends[mend].first, mends[mend].count);
}

void DocumentText::count_cut() {
  if (stats_[ImportIssue::kTruncatedFile].count == 0) count(ImportIssue::kTruncatedFile);
}

}  // namespace lanescope::format
