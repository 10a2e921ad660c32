// Asks the families one after the other; the first that knows the name fills in the result. The
// sentences are in the families' tables, one file per family under event_names/, so that each
// sentence can be checked there.
#include "lanescope/names/event_name.h"

#include "lanescope/names/events/families.h"
#include "lanescope/names/events/words.h"
#include "lanescope/names/kernel_name.h"

namespace lanescope::names {
namespace {

namespace en = events;

constexpr std::size_t kMaxNameBytes = 64 * 1024;
constexpr std::size_t kLongestDetail = 4 * 1024;

constexpr bool (*kEventFamilies[])(std::string_view, EventName&) = {
    en::read_training_name, en::read_overhead_name,  en::read_sync_name,
    en::read_frame_name,    en::read_compile_name,   en::read_collective_name,
    en::read_autograd_name, en::read_cuda_call_name, en::read_other_call_name,
    en::read_operator_name,
};

// What the category alone says. Nothing for operators: a library can record anything
// as an operator.
void explain_category(std::string_view name, CategoryKind category, EventName& out) {
  switch (category) {
    case CategoryKind::kUserAnnotation:
    case CategoryKind::kGpuUserAnnotation:
      out.kind = EventKind::kAnnotation;
      out.text = en::shortened(name, kLongestText);
      out.what =
          "A range that the program or one of its libraries opened and named itself, with "
          "record_function() or its like.";
      out.note = "Its time is everything that happened inside it: look at the rows below it.";
      break;
    case CategoryKind::kCpuOp: {
      if (en::read_compile_stage(name, out)) return;
      if (en::read_function_backward(name, out)) break;
      const std::size_t colons = name.find("::");
      if (colons == name.npos || !en::is_identifier(name.substr(0, colons))) return;
      const std::string library(name.substr(0, colons));
      out.kind = EventKind::kOperator;
      out.text = "recorded by " + en::shortened(library, 40);
      out.what = "An operator, or a step inside one, recorded by the library that calls itself " +
                 en::shortened(library, 80) + ".";
      out.details.emplace_back("library", en::shortened(library, kLongestDetail));
      break;
    }
    case CategoryKind::kPythonFunction:
      out.kind = EventKind::kPythonFrame;
      out.text = en::shortened(name, kLongestText);
      out.what = "A Python function, drawn from its call to its return.";
      break;
    case CategoryKind::kPythonSample:
      out.kind = EventKind::kPythonFrame;
      out.text = en::shortened(name, kLongestText);
      out.what =
          "A Python function that samples of its thread's stack, one after another, had in "
          "them. It is no single call.";
      break;
    case CategoryKind::kRuntime:
    case CategoryKind::kDriver:
      if (name == "INVALID") {
        out.text = "API call without a name";
        out.what = "An API call that the profiler could not name: it has the call's number only.";
        out.note = "Usually a call that is newer than the profiler; its time is real.";
      } else {
        out.text = en::shortened(name, kLongestText);
        out.what = category == CategoryKind::kRuntime
                       ? "A call of the device's runtime library, made by the thread of this row."
                       : "A call of the device's driver, made by the thread of this row.";
      }
      out.kind =
          category == CategoryKind::kRuntime ? EventKind::kRuntimeCall : EventKind::kDriverCall;
      break;
    default:
      return;
  }
  out.by_category = true;
}

void finish(std::string_view name, EventName& out) {
  if (out.text.empty() || !out.known()) out.text = std::string(name);
  out.text = en::shortened(out.text, kLongestText);
  if (out.group.empty())
    out.group = out.known() && !out.by_category ? std::string(name) : en::with_numbers_folded(name);
  for (auto& [key, value] : out.details) value = en::shortened(value, kLongestDetail);
}

EventName explained(std::string_view name) {
  EventName out;
  for (const auto family : kEventFamilies) {
    if (family(name, out)) return out;
    out = EventName();
  }
  return out;
}

}  // namespace

const char* event_kind_name(EventKind kind) {
  switch (kind) {
    case EventKind::kTrainingLoop:
      return "program's loop";
    case EventKind::kAnnotation:
      return "annotation";
    case EventKind::kOperator:
      return "operator";
    case EventKind::kBackward:
      return "backward of an operator";
    case EventKind::kAutogradEngine:
      return "autograd engine";
    case EventKind::kCompiledCode:
      return "compiled code";
    case EventKind::kCompiling:
      return "compiling";
    case EventKind::kCollective:
      return "collective";
    case EventKind::kSynchronisation:
      return "synchronisation";
    case EventKind::kRuntimeCall:
      return "runtime call";
    case EventKind::kDriverCall:
      return "driver call";
    case EventKind::kDriverOverhead:
      return "driver overhead";
    case EventKind::kProfilerOverhead:
      return "profiler overhead";
    case EventKind::kRecordMark:
      return "recorder's mark";
    case EventKind::kMemory:
      return "memory record";
    case EventKind::kFlow:
      return "arrow";
    case EventKind::kPythonFrame:
      return "python frame";
    case EventKind::kUnknown:
      break;
  }
  return "unknown";
}

EventName explain_event_name(std::string_view name) {
  name = name.substr(0, kMaxNameBytes);
  EventName out = explained(name);
  finish(name, out);
  return out;
}

EventName explain_event_name(std::string_view name, CategoryKind category) {
  name = name.substr(0, kMaxNameBytes);
  EventName out = explained(name);
  if (!out.known()) explain_category(name, category, out);
  finish(name, out);
  return out;
}

}  // namespace lanescope::names
