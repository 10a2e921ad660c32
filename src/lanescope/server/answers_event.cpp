// Everything about one slice.
#include <fmt/format.h>

#include <algorithm>

#include "lanescope/explain/code_of_slice.h"
#include "lanescope/names/event_name.h"
#include "lanescope/names/kernel_name.h"
#include "lanescope/report/event_name_text.h"
#include "lanescope/report/explain_text.h"
#include "lanescope/report/kernel_name_text.h"
#include "lanescope/report/text_format.h"
#include "lanescope/server/answers.h"
#include "lanescope/view/slice_details.h"

namespace lanescope::server {
namespace {

using report::JsonWriter;
using view::SliceDetails;

constexpr std::size_t kLongestArgument = 4000, kMostArguments = 200, kMostFrames = 100;

std::string text_of(std::string_view text) {
  return text.size() <= kLongestArgument
             ? report::one_line(text)
             : report::one_line(text.substr(0, kLongestArgument)) + "...";
}

std::string argument_text(const Trace& trace, const ArgsView& args, const ArgField& field) {
  switch (field.type) {
    case ArgType::kNull:
      return "null";
    case ArgType::kFalse:
      return "false";
    case ArgType::kTrue:
      return "true";
    case ArgType::kString:
    case ArgType::kJson:
      return text_of(trace.text(StringId{static_cast<std::uint32_t>(args.bits(field))}));
    case ArgType::kUint64:
      return fmt::format("{}", args.bits(field));
    case ArgType::kInt32:
    case ArgType::kInt64:
      return fmt::format("{}", args.integer(&field).value_or(0));
    case ArgType::kDouble:
      return fmt::format("{}", args.number(&field).value_or(0));
  }
  return {};
}

class EventAnswer {
 public:
  EventAnswer(const TraceState& state, SliceId slice)
      : state_(state),
        trace_(state.trace()),
        slice_(slice),
        args_(trace_.slice_args(slice)),
        explanation_(state.known_explanation()),  // before the facts: it is made of them
        details_(view::describe_slice(state.lanes(), slice, state.known_facts())),
        json_("view") {}

  std::string run() {
    const StringId name = trace_.slices().name[raw(slice_)];
    write_place(json_, state_, slice_);
    json_.text("name", full_name(state_, name));
    if (details_.self_ns) json_.integer("self_ns", *details_.self_ns);
    const Category& category = trace_.categories()[raw(trace_.slices().category[raw(slice_)])];
    json_.text("category", report::shorten(report::one_line(trace_.text(category.text)), 60));
    json_.integer("event_index", trace_.slices().event_index[raw(slice_)]);
    if (details_.place)
      json_.begin_object("thread")
          .text("title", lane_title(state_, state_.lanes().lanes()[details_.place->lane]))
          .end_object();
    arguments();
    describe();
    // A pass over all slices for one click: only until the facts are there.
    const explain::Facts* const facts = state_.known_facts();
    const explain::Sentence code =
        facts ? explain::code_of_slice(explain::frames_around(*facts), details_.code)
              : explain::code_of_slice(explain::FramesAround(trace_), details_.code);
    if (!code.pattern.empty()) json_.text("code", report::sentence_text(code));
    chain();
    if (details_.queue_ns) json_.integer("queue_ns", *details_.queue_ns);
    launched();
    same_name();
    occupancy();
    shapes_and_stack();
    arrows();
    findings();
    json_.begin_object("neighbours");
    neighbour("previous", details_.previous);
    neighbour("next", details_.next);
    json_.end_object();
    command();
    return json_.take();
  }

 private:
  void arguments() {
    json_.begin_array("args");
    for (std::size_t i = 0; i < std::min(args_.size(), kMostArguments); ++i) {
      const ArgField& field = args_.field(i);
      json_.begin_object().text("key",
                                report::shorten(report::one_line(trace_.text(field.key)), 100));
      json_.text("value", argument_text(trace_, args_, field)).end_object();
    }
    json_.end_array();
  }

  void describe() {
    json_.begin_object("describe");
    const std::string_view name = trace_.name(slice_);
    if (is_device_work(trace_.kind(slice_)))
      report::write_kernel_name(names::parse_kernel_name(name), json_);
    else
      report::write_event_name(names::explain_event_name(name, trace_.kind(slice_)), false, json_);
    json_.end_object();
  }

  void chain() {
    json_.begin_array("chain");
    for (const view::ChainLink& link : details_.chain) {
      json_.begin_object().text("role", view::chain_role_name(link.role));
      write_place(json_, state_, link.slice);
      json_.text("name", full_name(state_, trace_.slices().name[raw(link.slice)]));
      json_.boolean("self", link.slice == slice_).end_object();
    }
    json_.end_array();
  }

  void launched() {
    json_.begin_array("launched");
    for (const SliceId work : details_.launched) {
      json_.begin_object();
      write_place(json_, state_, work);
      json_.end_object();
    }
    json_.end_array().integer("launched_count", details_.launched_count);
    if (details_.forward != kNone<SliceId>) json_.integer("forward", raw(details_.forward));
  }

  void neighbour(const char* key, SliceId slice) {
    if (slice != kNone<SliceId>)
      json_.integer(key, raw(slice));
    else
      json_.null(key);
  }

  void same_name() {
    const view::SameName& same = details_.same;
    json_.begin_object("like").integer("count", same.count).integer("median_ns", same.median_ns);
    json_.integer("min_ns", same.shortest_ns).integer("max_ns", same.longest_ns);
    json_.integer("total_ns", same.total_ns);
    neighbour("previous", same.previous);
    neighbour("next", same.next);
    json_.end_object();
  }

  void occupancy() {
    if (!details_.shape) return;
    const analysis::LaunchShape& shape = *details_.shape;
    json_.begin_object("occupancy").integer("blocks", shape.blocks);
    json_.integer("block_threads", shape.block_threads).integer("sm_count", shape.sm_count);
    if (shape.occupancy) {
      json_.real("percent", 100 * shape.occupancy->achieved_ratio);
      json_.real("theoretical_percent", 100 * shape.occupancy->theoretical_ratio);
      json_.text("limiter", shape.occupancy->limit);
    }
    if (shape.slots > 0) json_.real("waves", shape.waves());
    json_.end_object();
  }

  void shapes_and_stack() {
    if (const auto dims = args_.text(ArgKey::kInputDims))
      json_.text("shapes", text_of(trace_.text(*dims)));
    const auto stack = args_.text(ArgKey::kCallStack);
    if (!stack) return;
    json_.begin_array("stack");
    std::string_view rest = trace_.text(*stack);
    for (std::size_t frames = 0; !rest.empty() && frames < kMostFrames; ++frames) {
      const std::size_t end = std::min(rest.find(';'), rest.size());
      std::string_view frame = rest.substr(0, end);
      // Ascend's traces have line ends after the semicolons.
      frame.remove_prefix(std::min(frame.find_first_not_of("\r\n"), frame.size()));
      json_.text({}, text_of(frame));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    json_.end_array();
  }

  void arrows() {
    json_.begin_array("arrows");
    for (const view::SliceArrow& arrow : details_.arrows) {
      const auto from = state_.lanes().place(arrow.from), to = state_.lanes().place(arrow.to);
      if (!from || !to) continue;
      json_.begin_object().integer("from", raw(arrow.from)).integer("to", raw(arrow.to));
      json_.integer("from_lane", from->lane).integer("from_row", from->row);
      json_.integer("to_lane", to->lane).integer("to_row", to->row);
      const std::int64_t origin = state_.lanes().origin_ns();
      json_.integer("from_ns", trace_.start_ns(arrow.from) - origin);
      json_.integer("from_end_ns", trace_.end_ns(arrow.from) - origin);
      json_.integer("to_ns", trace_.start_ns(arrow.to) - origin).end_object();
    }
    json_.end_array();
    const std::size_t listed =
        std::min<std::size_t>(details_.launched_count, view::kMostListedArrows);
    json_.integer("arrow_count", details_.arrows.size() + details_.launched_count - listed);
  }

  // Rules take seconds for millions of events, and nobody who clicks on one waits for them.
  void findings() {
    if (!explanation_) json_.boolean("pending", true);
    json_.begin_array("findings");
    if (explanation_)
      for (const explain::Finding& finding : explanation_->findings)
        if (std::any_of(finding.evidence.begin(), finding.evidence.end(),
                        [&](const explain::Evidence& each) { return each.slice == slice_; }))
          json_.text({}, finding.rule);
    json_.end_array();
  }

  void command() {
    json_.text("command", fmt::format("lanescope describe {}", shell_quoted(trace_.name(slice_))));
  }

  static std::string shell_quoted(std::string_view name) {
    std::string quoted = "'";
    for (const char c : report::one_line(name.substr(0, 300))) {
      if (c == '\'')
        quoted += "'\\''";
      else
        quoted += c;
    }
    return quoted + "'";
  }

  const TraceState& state_;
  const Trace& trace_;
  SliceId slice_;
  ArgsView args_;
  const explain::Explanation* explanation_;  // nullptr: not there yet
  SliceDetails details_;
  JsonWriter json_;
};

}  // namespace

std::string event_json(const TraceState& state, SliceId slice) {
  return EventAnswer(state, slice).run();
}

Answer event_answer(const TraceState& state, const Request& request) {
  const Result<SliceId> slice = needed_slice(state, request);
  if (!slice) return slice.error();
  return event_json(state, *slice);
}

}  // namespace lanescope::server
