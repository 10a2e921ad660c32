#include "lanescope/names/python_frame.h"

#include <optional>

#include "lanescope/names/events/words.h"
#include "lanescope/names/library_frames.h"

namespace lanescope::names {
namespace {

using events::after;

void read_module(std::string_view rest, PythonFrame& out) {
  const std::string_view type = events::without_trailing_digits(rest);
  const bool is_numbered = type.size() < rest.size() && type.ends_with('_') && type.size() > 1;
  out.module_class = is_numbered ? type.substr(0, type.size() - 1) : rest;
  if (is_numbered) out.module_number = rest.substr(type.size());
}

// "linear of type object at 0x7f...>"
void read_method(std::string_view rest, PythonFrame& out) {
  const std::size_t of = rest.find(" of ");
  if (!rest.ends_with('>') || of == rest.npos) return;
  out.function = rest.substr(0, of);
  const std::string_view object = rest.substr(of + 4, rest.size() - of - 5);
  out.object = object.substr(0, object.find(" object at "));
}

void read_place(std::string_view name, PythonFrame& out) {
  const std::size_t colon = name.rfind("): ");
  if (colon == name.npos) return;
  // A lambda's or a class's name may hold brackets; a file's line is digits between the last ones.
  const std::size_t open = name.rfind('(', colon);
  if (open == name.npos || open == 0) return;
  const std::string_view file = name.substr(0, open);
  const std::string_view line = name.substr(open + 1, colon - open - 1);
  const std::string_view function = name.substr(colon + 3);
  const bool is_source = file.ends_with(".py") || (file.starts_with('<') && file.ends_with('>'));
  if (!is_source || !events::is_digits(line) || function.empty()) return;
  out.file = file;
  out.line = line;
  out.function = function;
}

}  // namespace

PythonFrame read_python_frame(std::string_view name) {
  PythonFrame out;
  out.is_of_library = is_of_library(name);
  out.has_line_mark = name.find("): ") != name.npos;
  out.has_python_file_mark = name.find(".py(") != name.npos;
  if (const auto module = after(name, "nn.Module: ")) {
    out.is_module = true;
    read_module(*module, out);
  } else if (const auto method = after(name, "<built-in method ")) {
    read_method(*method, out);
  } else if (const auto function = after(name, "<built-in function ")) {
    if (function->ends_with('>')) out.function = function->substr(0, function->size() - 1);
  } else {
    read_place(name, out);
  }
  return out;
}

}  // namespace lanescope::names
