#include "lanescope/server/perfetto_server.h"

#include <fmt/format.h>
#include <httplib.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "lanescope/server/access.h"

namespace lanescope::server {
namespace {

constexpr char kPerfetto[] = "https://ui.perfetto.dev";
constexpr std::chrono::milliseconds kCheckEvery{100};

}  // namespace

Result<bool> serve_to_perfetto(const std::string& json,
                               const std::function<void(const std::string& link)>& ready,
                               const std::function<bool()>& is_ending) {
  httplib::Server server;
  const std::string path = fmt::format("/{}.json", make_token());
  std::atomic<bool> fetched{false};
  server.set_tcp_nodelay(true);
  server.set_socket_options([](socket_t socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  server.Get("/[a-z0-9]+[.]json", [&](const httplib::Request& request,
                                      httplib::Response& response) {
    if (!equal_secret(request.path, path) || !is_loopback_host(request.get_header_value("Host"))) {
      response.status = 404;
      return;
    }
    response.set_header("Access-Control-Allow-Origin", kPerfetto);
    response.set_header("Cache-Control", "no-cache");
    response.set_content_provider(
        json.size(), "application/json",
        [&](std::size_t offset, std::size_t length, httplib::DataSink& sink) {
          return sink.write(json.data() + offset, std::min<std::size_t>(length, 1 << 20));
        },
        [&](bool success) {
          if (success) fetched.store(true, std::memory_order_release);  // read below
        });
  });
  if (!server.bind_to_port("127.0.0.1", kPerfettoPort))
    return Error{Errc::kIo,
                 "port 9001 of 127.0.0.1 cannot be had; another program uses it "
                 "(trace_processor?), and Perfetto's page accepts no other port"};
  std::thread serving([&] { server.listen_after_bind(); });
  ready(fmt::format("{}/#!/?url=http://127.0.0.1:{}{}", kPerfetto, kPerfettoPort, path));
  while (!fetched.load(std::memory_order_acquire) && !is_ending())
    std::this_thread::sleep_for(kCheckEvery);
  server.stop();
  serving.join();
  return fetched.load(std::memory_order_acquire);
}

}  // namespace lanescope::server
