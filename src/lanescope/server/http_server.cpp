#include "lanescope/server/http_server.h"

#include <fmt/format.h>

#include "lanescope/server/access.h"
#include "lanescope/server/answers.h"
#include "lanescope/server/assets.h"

#include <httplib.h>
#include <sys/socket.h>

namespace lanescope::server {
namespace {

// A browser keeps up to six connections to a server, each of which holds one thread.
constexpr std::size_t kThreads = 32;
constexpr std::size_t kManyRequests = 1'000'000;  // of one connection, before it is closed
constexpr int kReadSeconds = 5, kWriteSeconds = 20, kIdleSeconds = 30;
constexpr std::chrono::milliseconds kLongestWait{20'000};
constexpr std::size_t kMostAnswerBytes = std::size_t{512} << 20;

// No foreign content, nothing inline, no form. Who may show it in a frame is added.
constexpr char kPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors ";
constexpr char kNobody[] = "'none'", kThisMachine[] = "http://127.0.0.1:* http://localhost:*";

void set_headers(httplib::Response& response, const std::string& policy) {
  response.set_header("Content-Security-Policy", policy);
  response.set_header("X-Content-Type-Options", "nosniff");
  response.set_header("Referrer-Policy", "no-referrer");
  response.set_header("Cross-Origin-Resource-Policy", "same-origin");
  response.set_header("Cache-Control", "no-store");
}

// set_content would copy the body, which may be hundreds of megabytes.
void set_body(httplib::Response& response, std::string body, const std::string& type) {
  response.body = std::move(body);
  response.set_header("Content-Type", type);
}

void set_reply(httplib::Response& response, Reply reply) {
  if (reply.body.size() > kMostAnswerBytes) {
    response.status = 413;
    response.set_content(
        error_json("the answer would be larger than 512 MB; choose a smaller area"),
        "application/json");
    return;
  }
  response.status = reply.status;
  set_body(response, std::move(reply.body), reply.type);
}

// What is no digit is left out.
std::uint64_t whole_number(const std::string& text) {
  std::uint64_t number = 0;
  for (const char c : text.substr(0, 18))
    if (c >= '0' && c <= '9') number = number * 10 + static_cast<std::uint64_t>(c - '0');
  return number;
}

std::string_view refusal(Access access) {
  switch (access) {
    case Access::kForeignHost:
      return "this server answers to 127.0.0.1 and localhost only";
    case Access::kForeignOrigin:
      return "another page asked; only lanescope's own page may";
    case Access::kNoToken:
      return "the token is missing or wrong; open the address that lanescope view printed";
    case Access::kGranted:
      break;
  }
  return {};
}

}  // namespace

struct HttpServer::State {
  std::shared_ptr<Session> session;
  httplib::Server server;
  std::string token = make_token();
  std::string policy = kPolicy;
  int port = 0;

  void set_up();
  bool refuse(const httplib::Request& request, httplib::Response& response) const;
  void send_asset(const std::string& path, httplib::Response& response) const;
  void answer_api(const httplib::Request& request, httplib::Response& response) const;
};

// True: the request may not be answered, and the response says why.
bool HttpServer::State::refuse(const httplib::Request& request, httplib::Response& response) const {
  set_headers(response, policy);
  const bool is_question = request.path.starts_with("/api/");
  // Two values of a header are none of ours.
  const auto only = [&](const char* name) {
    return request.get_header_value_count(name) == 1 ? request.get_header_value(name)
                                                     : std::string();
  };
  if (request.get_header_value_count("Origin") > 1) {
    response.status = 403;
    return true;
  }
  const Access access =
      check_access(only("Host"), only("Origin"), only("X-Token"), token, is_question);
  if (access == Access::kGranted) return false;
  response.status = access == Access::kNoToken ? 401 : 403;
  response.set_content(error_json(refusal(access)), "application/json");
  return true;
}

void HttpServer::State::send_asset(const std::string& path, httplib::Response& response) const {
  std::optional<std::string> bytes = read_asset(path);
  if (!bytes) {
    response.status = 404;
    response.set_content(
        error_json(page_assets().empty() ? "this lanescope was built without its page"
                                         : "there is no such file"),
        "application/json");
    return;
  }
  set_body(response, *std::move(bytes), std::string(media_type(path)));
}

void HttpServer::State::answer_api(const httplib::Request& request,
                                   httplib::Response& response) const {
  const std::string rank = request.get_header_value("X-Rank");
  if (request.path == "/api/alive") {
    const std::uint64_t generation =
        session->wait_for_change(whole_number(request.get_param_value("gen")), kLongestWait, rank);
    response.set_content(fmt::format("{{\"generation\": {}}}\n", generation), "application/json");
    return;
  }
  const std::size_t mark = request.target.find('?');
  const std::string query = mark == std::string::npos ? "" : request.target.substr(mark + 1);
  std::optional<std::uint64_t> generation;
  if (request.has_header("X-Generation"))
    generation = whole_number(request.get_header_value("X-Generation"));
  set_reply(response,
            session->answer(request.method, request.path, query, request.body, generation, rank));
}

void HttpServer::State::set_up() {
  server.set_tcp_nodelay(true);  // answers of 10 KB took 45 ms without it
  server.set_keep_alive_max_count(kManyRequests);
  server.set_keep_alive_timeout(kIdleSeconds);
  server.set_read_timeout(kReadSeconds);
  server.set_write_timeout(kWriteSeconds);
  server.set_payload_max_length(kMostRequestBytes);
  server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };  // httplib deletes it
  // httplib would share the port with any other program of the user that asks for it.
  server.set_socket_options([](socket_t socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  server.set_pre_routing_handler(
      [this](const httplib::Request& request, httplib::Response& response) {
        return refuse(request, response) ? httplib::Server::HandlerResponse::Handled
                                         : httplib::Server::HandlerResponse::Unhandled;
      });
  server.set_exception_handler(
      [](const httplib::Request&, httplib::Response& response, std::exception_ptr) {
        response.status = 500;
        response.set_content(error_json("the answer could not be made"), "application/json");
      });
  server.Get("/", [this](const httplib::Request&, httplib::Response& response) {
    send_asset("index.html", response);
  });
  server.Get("/assets/[A-Za-z0-9][A-Za-z0-9._-]*",
             [this](const httplib::Request& request, httplib::Response& response) {
               send_asset(request.path.substr(1), response);
             });
  const auto api = [this](const httplib::Request& request, httplib::Response& response) {
    answer_api(request, response);
  };
  server.Get("/api/[a-z]+", api);
  server.Post("/api/[a-z]+", api);
}

HttpServer::HttpServer(std::unique_ptr<State> state) : state_(std::move(state)) {}
HttpServer::~HttpServer() { stop(); }

Result<std::unique_ptr<HttpServer>> HttpServer::open(std::shared_ptr<Session> session,
                                                     const HttpOptions& options) {
  auto state = std::make_unique<State>();
  state->session = std::move(session);
  state->policy += options.in_frame ? kThisMachine : kNobody;
  state->set_up();
  constexpr char kAddress[] = "127.0.0.1";
  if (options.port == 0)
    state->port = state->server.bind_to_any_port(kAddress);
  else if (state->server.bind_to_port(kAddress, options.port))
    state->port = options.port;
  if (state->port <= 0)
    return Error{
        Errc::kIo,
        options.port == 0
            ? std::string("no free port was found on 127.0.0.1")
            : fmt::format(
                  "port {} of 127.0.0.1 cannot be had; another program uses it, or it needs "
                  "more rights. Without --port, a free one is taken",
                  options.port)};
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(state)));
}

int HttpServer::port() const { return state_->port; }
const std::string& HttpServer::token() const { return state_->token; }
std::string HttpServer::url() const {
  return fmt::format("http://127.0.0.1:{}/#t={}", state_->port, state_->token);
}
void HttpServer::run() { state_->server.listen_after_bind(); }
void HttpServer::stop() {
  state_->session->wake_all();
  state_->server.stop();
}

}  // namespace lanescope::server
