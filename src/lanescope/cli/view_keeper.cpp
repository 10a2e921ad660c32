#include "lanescope/cli/view_keeper.h"

#include <chrono>
#include <utility>

#include "lanescope/server/give_way.h"
#include "lanescope/server/kept_view.h"

namespace lanescope::cli {
namespace {

constexpr std::chrono::milliseconds kKeeperNap{200};
constexpr int kKeeperNaps = 15;

}  // namespace

ViewKeeper::ViewKeeper(std::vector<KeptTrace> traces)
    : traces_(std::move(traces)), thread_([this] { run(); }) {}

ViewKeeper::~ViewKeeper() {
  ending_.store(true, std::memory_order_relaxed);
  thread_.join();
}

void ViewKeeper::run() {
  const auto ends = [this] { return ending_.load(std::memory_order_relaxed); };
  for (int i = 0; i < kKeeperNaps && !ends(); ++i) std::this_thread::sleep_for(kKeeperNap);
  const auto options = format::index_options_from_environment();
  if (!options) return;
  server::run_giving_way([&] {
    for (const KeptTrace& each : traces_)
      if (!ends()) server::keep_view(each.path, each.state->lanes(), each.kept, *options);
  });
}

}  // namespace lanescope::cli
