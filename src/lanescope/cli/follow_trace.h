// Follows a recording that still runs: reads the file again when it has grown, and gives the page the
// newer trace.
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "lanescope/server/session.h"

namespace lanescope::cli {

// Can `path` grow? A folder, whose newest trace may change, and a recording (.lspool).
bool may_grow(const std::string& path);

class TraceFollower {
 public:
  // `path` as the user named it. Starts a thread; ends it when it is destroyed, after the reading
  // that is under way.
  TraceFollower(std::string path, std::shared_ptr<server::Session> session);
  ~TraceFollower();
  TraceFollower(const TraceFollower&) = delete;
  TraceFollower& operator=(const TraceFollower&) = delete;

 private:
  void run();

  std::string path_;
  std::shared_ptr<server::Session> session_;
  std::atomic<bool> ending_{false};
  std::thread thread_;
};

}  // namespace lanescope::cli
