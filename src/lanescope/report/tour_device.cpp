// Stops about the GPU: the launch, the kernel, where the GPU waits, how far the CPU is ahead.
#include <fmt/format.h>

#include "lanescope/report/explain_words.h"
#include "lanescope/report/idle_cause_sentence.h"
#include "lanescope/report/rounded_numbers.h"
#include "lanescope/report/text_format.h"
#include "lanescope/report/tour_maker.h"

namespace lanescope::report {

using view::Lane;
using view::LaneKind;

// The longest GPU work of the usual step whose operator and launch are known.
void TourMaker::choose_kernel() {
  if (!facts_.main_device) return;
  for (const auto& work : facts_.device().timeline.work) {
    const SliceId launch = facts_.links.launch_of[raw(work.slice)];
    if (launch == kNone<SliceId> || trace_.start_ns(launch) < window_.start_ns ||
        work.end_ns > window_.end_ns || trace_.kind(work.slice) != CategoryKind::kKernel)
      continue;
    const bool has_op = facts_.links.op_of[raw(work.slice)] != kNone<SliceId>;
    const bool had_op =
        kernel_ != kNone<SliceId> && facts_.links.op_of[raw(kernel_)] != kNone<SliceId>;
    if (kernel_ == kNone<SliceId> || (has_op && !had_op) ||
        (has_op == had_op && work.end_ns - work.start_ns > trace_.dur_ns(kernel_)))
      kernel_ = work.slice;
  }
}

void TourMaker::add_way_to_the_gpu() {
  const SliceId launch = facts_.links.launch_of[raw(kernel_)];
  add_operator(facts_.links.op_of[raw(kernel_)]);
  const std::size_t started = facts_.links.launched_by(launch).size();
  add_slice(
      "The launch",
      fmt::format(
          "{} hands {} to the GPU. It takes {} on the CPU and does not wait until the GPU has done "
          "it. So a long operator on the CPU does not mean long work on the GPU, and the other way "
          "round.",
          name_of(launch),
          started > 1 ? fmt::format("{} pieces of work at once", format_count(started))
                      : "one piece of work, a kernel,",
          rounded_time(trace_.dur_ns(launch))),
      launch, name_of(launch));
  const std::int64_t delay = trace_.start_ns(kernel_) - trace_.end_ns(launch);
  const Track& stream = trace_.track(kernel_);
  TourStop& stop = add(
      "The kernel on the GPU",
      fmt::format(
          "{} the kernel runs on the GPU, for {}: {}. The lane is {}. A stream is a queue of the "
          "GPU: its work runs one after the other, and work of different streams may run at the "
          "same time. The arrow leads from the launch to the kernel.",
          delay >= 0 ? fmt::format("{} after that call returned,", rounded_time(delay))
                     : "While that call still runs,",
          rounded_time(trace_.dur_ns(kernel_)), name_of(kernel_), one_line(track_place(stream))),
      {std::min(trace_.start_ns(launch), trace_.start_ns(kernel_)),
       std::max(trace_.end_ns(launch), trace_.end_ns(kernel_))},
      "stream");
  stop.slice = kernel_;
  stop.arrow = {launch, kernel_};
  for (const SliceId each : {launch, kernel_})
    if (const auto place = lanes_.place(each)) stop.lanes.push_back(place->lane);
}

void TourMaker::add_gap() {
  if (!facts_.main_device) return;
  const auto device = static_cast<std::uint32_t>(*facts_.main_device);
  std::optional<std::uint32_t> longest;
  for (std::uint32_t i = 0; i < lanes_.idle_items().size(); ++i) {
    if (lanes_.idle_items()[i].device != device) continue;
    const auto& part = lanes_.idle_part(i);
    if (part.start_ns < window_.start_ns || part.end_ns > window_.end_ns) continue;
    if (!longest || part.end_ns - part.start_ns >
                        lanes_.idle_part(*longest).end_ns - lanes_.idle_part(*longest).start_ns)
      longest = i;
  }
  if (!longest) return;
  const auto& part = lanes_.idle_part(*longest);
  const auto& gap = lanes_.gap(*longest);
  std::string text =
      fmt::format("Here GPU {} runs nothing for {}. {}", facts_.device().timeline.device,
                  rounded_time(part.end_ns - part.start_ns), idle_cause_sentence(part.cause));
  if (part.thread != kNone<TrackId>) {
    const auto shares =
        explain::host_shares(facts_, {{part.thread, part.start_ns, part.end_ns, part.blame}});
    if (!shares.empty()) {
      const std::string share = rounded_sentence(describe(shares.front()));
      text += fmt::format(" What the CPU did most of that time: {}{}", share,
                          share.ends_with('.') ? "" : ".");  // of a name that was cut
    }
  }
  text += " Such times have a lane of their own: each is a bar that you can click.";
  TourStop& stop =
      add("Where the GPU waits", std::move(text), {part.start_ns, part.end_ns}, "idle");
  stop.slice = gap.next_work;
  if (const auto lane = lanes_.lane_of_idle(facts_.devices[device].timeline.device))
    stop.lanes.push_back(*lane);
  if (gap.next_work != kNone<SliceId>)
    if (const auto place = lanes_.place(gap.next_work)) stop.lanes.push_back(place->lane);
}

void TourMaker::add_queue() {
  if (!facts_.main_device) return;
  for (std::uint32_t i = 0; i < lanes_.lanes().size(); ++i) {
    const Lane& lane = lanes_.lanes()[i];
    if (lane.kind != LaneKind::kCounter || lane.source != view::CounterSource::kQueueDepth ||
        lane.device != facts_.device().timeline.device)
      continue;
    TourStop& stop = add(
        "How far the CPU is ahead",
        fmt::format("This line counts work that was launched and has not begun; at most {} in this "
                    "recording. While it is above 0, the GPU has its next work ready. Where it is "
                    "0, no work is queued after the work that runs: when that ends, the GPU waits "
                    "for the CPU.",
                    format_count(static_cast<std::uint64_t>(lanes_.counter(lane).largest()))),
        window_, "queue");
    stop.lanes.push_back(i);
    return;
  }
}

}  // namespace lanescope::report
