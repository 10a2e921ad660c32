#include "lanescope/cli/lock_shares.h"

#include <fmt/format.h>

#include <algorithm>

#include "lanescope/cli/text.h"

namespace lanescope::cli {
namespace {

constexpr std::uint64_t kFewestMoments = 30;  // as rules of explain
constexpr std::size_t kMostFunctions = 4096;  // that are listed one by one

std::string share(std::uint64_t part, std::uint64_t whole) {
  return fmt::format("about {:.0f} % ({} of {})",
                     100 * static_cast<double>(part) / static_cast<double>(whole),
                     with_commas(part), with_commas(whole));
}

template <typename Map>
auto most_of(const Map& map) {
  return std::max_element(map.begin(), map.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; });
}

void count_function(const std::string& name, std::map<std::string, std::uint64_t>* functions) {
  if (functions->size() < kMostFunctions || functions->contains(name)) ++(*functions)[name];
}

}  // namespace

void LockShares::add(const std::optional<sample::GilState>& state,
                     const std::vector<sample::SampledStack>& stacks,
                     const sample::StackReader& reader) {
  if (!state) return;
  ++times_;
  if (state->holder != 0) ++held_;
  knows_waiters_ |= state->waiting.has_value();
  const std::uint32_t waiting = state->waiting.value_or(0);
  if (waiting > 0) ++waited_;
  waiting_ += waiting;
  if (state->is_collecting) ++collecting_;
  if (state->holder == 0 || (waiting == 0 && !state->is_collecting)) return;
  const auto holder = std::find_if(stacks.begin(), stacks.end(), [&](const auto& stack) {
    return stack.state == state->holder && !stack.frames.empty();
  });
  if (holder == stacks.end()) return;  // its thread has ended, or runs no Python code
  const sample::SampledFunction& function = reader.function(holder->frames.front().function);
  const std::string name =
      fmt::format("{}({}): {}", function.file, function.first_line, function.name);
  if (state->is_collecting) count_function(name, &collected_in_);
  if (waiting == 0) return;
  Holder& found = holders_[holder->thread];
  ++found.times;
  count_function(name, &found.functions);
}

std::vector<std::string> LockShares::lines() const {
  std::vector<std::string> lines;
  if (times_ < kFewestMoments) return lines;
  std::string line = fmt::format("the GIL was held in {} moments", share(held_, times_));
  if (knows_waiters_)
    line += fmt::format("; threads waited for it in {}", share(waited_, times_));
  else
    line += "; whether threads waited for it is not known: its libc is not that of lanescope";
  if (waited_ > 0)
    line += fmt::format(", {:.1f} of them on average",
                        static_cast<double>(waiting_) / static_cast<double>(waited_));
  lines.push_back(std::move(line));
  const auto most = std::max_element(
      holders_.begin(), holders_.end(),
      [](const auto& a, const auto& b) { return a.second.times < b.second.times; });
  if (waited_ >= kFewestMoments && most != holders_.end()) {
    const auto function = most_of(most->second.functions);
    lines.push_back(fmt::format(
        "while threads waited, thread {} held it in {}, most often in {} ({})", most->first,
        share(most->second.times, waited_), function->first, with_commas(function->second)));
  }
  if (collecting_ > 0) {
    line = fmt::format("garbage was collected in {} moments", share(collecting_, times_));
    if (const auto function = most_of(collected_in_);
        collecting_ >= kFewestMoments && function != collected_in_.end())
      line +=
          fmt::format(", most often in {} ({})", function->first, with_commas(function->second));
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string LockShares::json() const {
  std::string json =
      fmt::format(R"({{"times": {}, "held": {}, "collecting": {})", times_, held_, collecting_);
  if (knows_waiters_) json += fmt::format(R"(, "waited": {}, "waiting": {})", waited_, waiting_);
  return json + "}";
}

}  // namespace lanescope::cli
