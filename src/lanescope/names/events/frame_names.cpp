// Python frames, as torch.profiler's with_stack names them (torch/csrc/autograd/profiler_python):
// "file.py(34): function", "<built-in method linear of type object at 0x7f...>", "nn.Module:
// Linear_3". lanescope's recorder uses the same names.
#include "lanescope/names/events/families.h"
#include "lanescope/names/events/words.h"
#include "lanescope/names/python_frame.h"

namespace lanescope::names::events {
namespace {

constexpr std::string_view kNote =
    "Its time is all that it called: look at the rows below it. Recording frames makes Python "
    "slower than it is.";

void frame(EventName& out, std::string text, std::string_view what) {
  out.kind = EventKind::kPythonFrame;
  out.text = std::move(text);
  out.what = what;
  out.gpu_work = "none itself: that of the operators it calls";
  out.note = kNote;
  out.rule = "stack-cost";
}

}  // namespace

bool read_frame_name(std::string_view name, EventName& out) {
  const PythonFrame read = read_python_frame(name);
  const auto detail = [&](const char* key, std::string_view value) {
    if (!value.empty()) out.details.emplace_back(key, std::string(value));
  };
  if (read.is_module) {
    if (read.module_number.empty()) return false;
    frame(out, std::string("module ").append(shortened(read.module_class, 70)),
          "A module of the model is called; the number tells modules of one class apart, in the "
          "order in which the profiler saw them.");
    detail("class", read.module_class);
    detail("number", read.module_number);
    out.group = std::string("nn.Module: ").append(read.module_class).append("_*");
    return true;
  }
  if (!read.object.empty()) {
    frame(out,
          std::string("C function ")
              .append(shortened(read.function, 40))
              .append(" of ")
              .append(shortened(read.object, 40)),
          read.object == "type"
              ? std::string_view("A function written in C that belongs to a type, called from "
                                 "Python; torch.conv2d and its like look so.")
              : std::string_view("A method written in C, called from Python."));
    detail("function", read.function);
    detail("object", read.object);
    out.group = with_numbers_folded(name);
    return true;
  }
  if (read.function.empty()) return false;
  if (read.file.empty()) {
    frame(out, std::string("C function ").append(shortened(read.function, 70)),
          "A function written in C, called from Python.");
  } else {
    frame(out, std::string("Python function ").append(shortened(read.function, 70)),
          "A function of the Python program, from its call to its return.");
    detail("file", read.file);
    detail("line", read.line);
  }
  detail("function", read.function);
  return true;
}

}  // namespace lanescope::names::events
