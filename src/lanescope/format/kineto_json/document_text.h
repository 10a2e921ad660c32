// The text of a document as its readers go through it: the next character, the repair of one value,
// and damage, counted where it was found.
#pragma once
#include <cstdint>
#include <string>

#include "lanescope/codec/json_mend.h"
#include "lanescope/codec/unpack.h"
#include "lanescope/format/kineto_json/text_window.h"
#include "lanescope/format/read_trace.h"
#include "lanescope/model/import_stats.h"

namespace lanescope::format {

// One thread. Borrows all that it is given.
class DocumentText {
 public:
  static constexpr int kEnd = -1;

  DocumentText(codec::UnpackedSource& source, const ReadOptions& options, ImportStats& stats);

  TextWindow& window() { return window_; }
  const codec::UnpackedSource& source() const { return source_; }

  // As TextWindow::grow(), and reports the progress.
  bool grow();
  // The next character that is not blank, without consuming it; kEnd: none.
  int next();
  // Repairs the value that begins here into mended(), reading on as far as needed.
  codec::MendResult mend();
  std::string& mended() { return mended_; }  // until the next mend(); may be written to
  // How many bytes mend() has looked at, in all.
  std::uint64_t mend_work() const { return mend_work_; }

  void count(ImportIssue issue) { stats_.count(issue, window_.offset()); }
  void count(const codec::Mends& mends);
  void count_cut();  // once for all calls: the text ends too early

 private:
  codec::UnpackedSource& source_;
  const ReadOptions& options_;
  ImportStats& stats_;
  TextWindow window_;
  std::string mended_;
  std::uint64_t mend_work_ = 0;
};

}  // namespace lanescope::format
