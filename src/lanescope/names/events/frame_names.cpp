// Python frames, as torch.profiler's with_stack names them (torch/csrc/autograd/profiler_python):
// "file.py(34): function", "<built-in method linear of type object at 0x7f...>", "nn.Module:
// Linear_3". lanescope's recorder uses the same names.
#include "lanescope/names/events/families.h"
#include "lanescope/names/events/words.h"

namespace lanescope::names::events {
namespace {

constexpr std::string_view kNote =
    "Its time is all that it called: look at the rows below it. Recording frames makes Python "
    "slower "
    "than it is.";

void frame(EventName& out, std::string text, std::string_view what) {
  out.kind = EventKind::kPythonFrame;
  out.text = std::move(text);
  out.what = what;
  out.gpu_work = "none itself: that of the operators it calls";
  out.note = kNote;
  out.rule = "stack-cost";
}

// "train.py(34): forward", "<frozen os>(680): __getitem__".
bool read_source_frame(std::string_view name, EventName& out) {
  const std::size_t colon = name.rfind("): ");
  if (colon == name.npos) return false;
  // A lambda's or a class's name may hold brackets; a file's line is digits between the last ones.
  const std::size_t open = name.rfind('(', colon);
  if (open == name.npos || open == 0) return false;
  const std::string_view file = name.substr(0, open);
  const std::string_view line = name.substr(open + 1, colon - open - 1);
  const std::string_view function = name.substr(colon + 3);
  const bool is_source = file.ends_with(".py") || (file.starts_with('<') && file.ends_with('>'));
  if (!is_source || !is_digits(line) || function.empty()) return false;
  frame(out, std::string("Python function ").append(shortened(function, 70)),
        "A function of the Python program, from its call to its return.");
  out.details.emplace_back("file", std::string(file));
  out.details.emplace_back("line", std::string(line));
  out.details.emplace_back("function", std::string(function));
  return true;
}

}  // namespace

bool read_frame_name(std::string_view name, EventName& out) {
  if (const auto rest = after(name, "nn.Module: "); rest && !rest->empty()) {
    std::string_view type = without_trailing_digits(*rest);
    const std::string_view number = rest->substr(type.size());
    if (number.empty() || !type.ends_with('_') || type.size() < 2) return false;
    type.remove_suffix(1);
    frame(out, std::string("module ").append(shortened(type, 70)),
          "A module of the model is called; the number tells modules of one class apart, in the "
          "order in which the profiler saw them.");
    out.details.emplace_back("class", std::string(type));
    out.details.emplace_back("number", std::string(number));
    out.group = std::string("nn.Module: ").append(type).append("_*");
    return true;
  }
  if (const auto rest = after(name, "<built-in method "); rest && rest->ends_with('>')) {
    const std::size_t of = rest->find(" of ");
    if (of == rest->npos) return false;
    const std::string_view method = rest->substr(0, of);
    std::string_view object = rest->substr(of + 4, rest->size() - of - 5);
    object = object.substr(0, object.find(" object at "));
    frame(out,
          std::string("C function ")
              .append(shortened(method, 40))
              .append(" of ")
              .append(shortened(object, 40)),
          object == "type"
              ? std::string_view("A function written in C that belongs to a type, called from "
                                 "Python; torch.conv2d and its like look so.")
              : std::string_view("A method written in C, called from Python."));
    if (!method.empty()) out.details.emplace_back("function", std::string(method));
    out.details.emplace_back("object", std::string(object));
    out.group = with_numbers_folded(name);
    return true;
  }
  if (const auto rest = after(name, "<built-in function ");
      rest && rest->ends_with('>') && rest->size() > 1) {
    const std::string_view function = rest->substr(0, rest->size() - 1);
    frame(out, std::string("C function ").append(shortened(function, 70)),
          "A function written in C, called from Python.");
    out.details.emplace_back("function", std::string(function));
    return true;
  }
  return read_source_frame(name, out);
}

}  // namespace lanescope::names::events
