// The page and its answers over HTTP, for this machine only. docs/decisions/viewer.md#server
#pragma once
#include <chrono>
#include <memory>
#include <string>

#include "lanescope/base/result.h"
#include "lanescope/server/session.h"

namespace lanescope::server {

struct HttpOptions {
  int port = 0;           // 0: any free one
  bool in_frame = false;  // pages of this machine, such as a notebook's, may show it in a frame
};

class HttpServer {
 public:
  // Binds 127.0.0.1 and makes the token. kIo: the port cannot be had.
  static Result<std::unique_ptr<HttpServer>> open(std::shared_ptr<Session> session,
                                                  const HttpOptions& options);
  ~HttpServer();

  int port() const;
  const std::string& token() const;
  std::string url() const;  // with the token in its fragment

  // Answers until stop(). One thread; the answers are made by others.
  void run();
  // Ends run(). Any thread, more than once.
  void stop();

  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

 private:
  struct State;
  explicit HttpServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace lanescope::server
