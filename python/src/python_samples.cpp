// Samples of this process's Python stacks: finds the interpreter, and starts and ends the thread
// that takes them (lanescope/sample/stack_sampler.h).
#include <dlfcn.h>
#include <pybind11/stl.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "lanescope/sample/stack_reader.h"
#include "lanescope/sample/stack_sampler.h"

namespace lanescope::python {
namespace {

std::uint64_t address_of(const void* object) {
  return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(object));
}

// With the GIL. Why there are no samples, in one line; empty when there are.
std::string start_samples(std::uint32_t per_second, std::vector<std::string> prefixes) {
#if defined(PYPY_VERSION)
  return "only stacks of CPython are sampled";
#else
  const void* const runtime = dlsym(RTLD_DEFAULT, "_PyRuntime");
  if (runtime == nullptr) return "this Python does not show its _PyRuntime, which samples need";
  sample::RunningProcess memory(getpid());
  Result<sample::PythonLayout> layout =
      sample::find_layout(memory, address_of(runtime), PY_VERSION_HEX);
  if (!layout) return layout.error().message;
  if (sample::first_interpreter(memory, *layout, address_of(runtime)) == 0)
    return "this process cannot read its own memory with process_vm_readv or /proc/self/mem, which "
           "samples need";
  sample::SamplerOptions options;
  options.per_second = per_second;
  options.layout = *layout;
  options.runtime = address_of(runtime);
  options.interpreter = address_of(PyInterpreterState_Get());
  options.code_type = address_of(&PyCode_Type);
  options.prefixes = std::move(prefixes);
  const Result<void> started = sample::start_sampler(options);
  return started ? std::string() : started.error().message;
#endif
}

// The table's offsets for the running version, for a test; empty: the version has none.
py::dict layout_of_this_python() {
  py::dict out;
  const Result<sample::PythonLayout> layout = sample::layout_of_version(PY_VERSION_HEX);
  if (!layout) return out;
  const auto add = [&](const char* name, std::uint32_t offset) {
    if (offset != sample::kNoOffset) out[name] = offset;
  };
  add("interpreters_head", layout->interpreters_head);
  add("interpreter_next", layout->interpreter_next);
  add("threads_head", layout->threads_head);
  add("thread_next", layout->thread_next);
  add("pthread", layout->pthread);
  add("native_id", layout->native_id);
  add("frame", layout->frame);
  add("cframe_frame", layout->cframe_frame);
  add("chunk", layout->chunk);
  add("chunk_top", layout->chunk_top);
  add("frame_previous", layout->frame_previous);
  add("frame_code", layout->frame_code);
  add("frame_instruction", layout->frame_instruction);
  add("frame_generator", layout->frame_generator);
  add("frame_owner", layout->frame_owner);
  add("code_file", layout->code_file);
  add("code_name", layout->code_name);
  add("code_first_line", layout->code_first_line);
  add("code_lines", layout->code_lines);
  add("code_bytecode", layout->code_bytecode);
  add("ascii_header", layout->ascii_header);
  add("text_header", layout->text_header);
  add("gil_holder", layout->gil_holder);
  add("gc_collecting", layout->gc_collecting);
  return out;
}

}  // namespace

void bind_samples(py::module_& m) {
  m.def(
      "start_samples",
      [](std::uint32_t per_second, std::vector<std::string> prefixes) {
        return to_str(start_samples(per_second, std::move(prefixes)));
      },
      py::arg("per_second"), py::arg("prefixes"));
  m.def("samples_taken", [] { return sample::samples_taken(); });
  m.def("child_samples_taken", [] { return sample::child_samples_taken(); });
  m.def("python_layout", [] { return layout_of_this_python(); });
  m.def("flush_samples", [] { without_gil([] { sample::flush_samples(); }); });
  m.def("stop_samples", [] { without_gil([] { sample::stop_sampler(); }); });
}

}  // namespace lanescope::python
