#include "frame_names.h"

#include <cstdio>
#include <unordered_map>

#include "lanescope/record/thread_writer.h"

namespace lanescope::python::frames {
namespace {

// As repr() of the function says it. No Python code runs for that.
std::uint32_t text_of_c_function(const PyMethodDef* definition, PyObject* self) {
  char text[512];
  const int size =
      !self || PyModule_Check(self)
          ? std::snprintf(text, sizeof text, "<built-in function %.200s>", definition->ml_name)
          : std::snprintf(text, sizeof text, "<built-in method %.200s of %.200s object at %p>",
                          definition->ml_name, Py_TYPE(self)->tp_name, static_cast<void*>(self));
  return record::intern_text(text, static_cast<std::size_t>(size));
}

// All that were met; never destroyed, because threads may run beyond main().
std::unordered_map<const PyMethodDef*, KnownFunction>& all_c_functions() {
  static auto* instance = new std::unordered_map<const PyMethodDef*, KnownFunction>;
  return *instance;
}

}  // namespace

std::uint32_t name_of(const void* frame) {
  const LanescopeFrame at{lanescope_frame_code(frame), lanescope_frame_instruction(frame)};
  if (const KnownFrame* const known = find_known(at)) return known->name;
  const std::uint32_t generation = code_generation(), name = frame_text_id(at);
  known_frames.add(key_in_table(at), {at.code, at.instruction, generation, name});
  return name;
}

// One name for all objects that a method is called on: that of the profile's first, as in
// torch.profiler.
std::uint32_t name_of_c_function(const PyMethodDef* definition, PyObject* self) {
  if (const KnownFunction* const near = find_known(definition)) return near->name;
  KnownFunction& known = all_c_functions()[definition];
  if (!is_known(known, definition))
    known = {definition, definition->ml_name, definition->ml_meth,
             text_of_c_function(definition, self)};
  known_functions.add(key_in_table(definition), known);
  return known.name;
}

void forget_c_functions() {
  all_c_functions().clear();
  known_functions.clear();
}

}  // namespace lanescope::python::frames
