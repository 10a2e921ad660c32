// record and profiler: Profiler with the schedule's answer handed in, so that an exception of a
// Python schedule comes out of step() before anything has changed.
#include <dlfcn.h>
#include <pybind11/stl.h>

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "bindings.h"
#include "lanescope/base/byte_size.h"
#include "lanescope/base/percent.h"
#include "lanescope/profiler/profiler.h"
#include "lanescope/record/recording_name.h"
#include "lanescope/record/write_results.h"
#include "stuck_signal.h"

namespace lanescope::python {
namespace {

bool is_finalizing() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

// Calls may come from any Python thread; the GIL is released inside, so they are serialised here.
// Python's collector does not look in here: the two callables must not keep the profile alive that
// owns this object (lanescope/profiler.py passes weak ones).
class PyProfiler {
 public:
  PyProfiler(py::object schedule, int first_action, py::object on_trace_ready,
             ProfilerOptions options)
      : schedule_(std::move(schedule)),
        first_step_(options.first_step),
        on_trace_ready_(std::move(on_trace_ready)),
        next_action_(static_cast<ProfilerAction>(first_action)) {
    if (!schedule_.is_none())
      options.schedule = [this](std::int64_t step) { return action_at(step); };
    options.on_trace_ready = [this](Profiler&) { call_trace_ready(); };
    profiler_ = std::make_unique<Profiler>(std::move(options));
  }
  ~PyProfiler() {
    on_trace_ready_ = py::none();  // nobody is left to hear an exception of it
    // The interpreter ends while this records: the recorder's own exit handler finishes the file
    // and says where it is, so the file must not go with this object.
    if (running_ && is_finalizing()) {
      static_cast<void>(profiler_.release());
      return;
    }
    py::gil_scoped_release release;
    profiler_.reset();
  }
  PyProfiler(const PyProfiler&) = delete;
  PyProfiler& operator=(const PyProfiler&) = delete;

  void start() {
    step_ = first_step_;
    value_or_raise(without_gil([&] { return profiler_->start(); }));
    running_ = true;
    throw_pending();
  }
  void rest() {
    without_gil([&] { profiler_->rest(); });
    throw_pending();
  }
  bool can_go_on() const { return profiler_->can_go_on(); }
  void go_on(int action, std::int64_t step) {
    next_action_ = static_cast<ProfilerAction>(action);
    step_ = step;
    without_gil([&] { profiler_->go_on(step); });
    throw_pending();
  }
  void begin() {
    value_or_raise(without_gil([&] { return profiler_->begin(); }));
    running_ = true;
  }
  void step(int action, std::int64_t number) {
    next_action_ = static_cast<ProfilerAction>(action);
    step_ = number;
    without_gil([&] { profiler_->step(number); });
    throw_pending();
  }
  void stop() {
    running_ = false;
    without_gil([&] { profiler_->stop(); });
    throw_pending();
  }
  std::shared_ptr<Trace> trace() {
    // Python has no const; the bindings of Trace only read.
    return std::const_pointer_cast<Trace>(
        value_or_raise(without_gil([&] { return profiler_->trace(); })));
  }
  void export_chrome_trace(const std::string& path) {
    value_or_raise(without_gil([&] { return profiler_->export_chrome_trace(path); }));
  }
  py::list take_warnings() {
    const std::vector<std::string> all = profiler_->warnings();
    py::list fresh;
    for (; warnings_taken_ < all.size(); ++warnings_taken_)
      fresh.append(to_str(all[warnings_taken_]));
    return fresh;
  }
  py::dict stats() const {
    const record::RecorderStats stats = profiler_->stats();
    py::dict dict;
    dict["file_bytes"] = stats.file_bytes;
    dict["dropped_records"] = stats.dropped_records;
    dict["depth_overflow"] = stats.depth_overflow;
    dict["threads"] = stats.threads;
    return dict;
  }
  Profiler& profiler() { return *profiler_; }

 private:
  // The step at hand was asked for before; others are looked at to explain an empty result.
  ProfilerAction action_at(std::int64_t step) {
    if (step == step_) return next_action_;
    const py::gil_scoped_acquire acquire;
    try {
      return static_cast<ProfilerAction>(schedule_(step).cast<int>());
    } catch (const std::exception&) {
      return ProfilerAction::kNone;
    }
  }
  // Inside start, step or stop, without the GIL. An exception waits until the C++ call has
  // returned.
  void call_trace_ready() {
    py::gil_scoped_acquire acquire;
    if (on_trace_ready_.is_none()) return;
    try {
      on_trace_ready_();
    } catch (py::error_already_set&) {
      if (!pending_) pending_ = std::current_exception();
    }
  }
  void throw_pending() {
    if (pending_) std::rethrow_exception(std::exchange(pending_, nullptr));
  }

  py::object schedule_;  // int -> int, or None
  std::int64_t first_step_ = 0;
  py::object on_trace_ready_;
  std::int64_t step_ = 0;
  ProfilerAction next_action_;
  std::exception_ptr pending_;
  std::size_t warnings_taken_ = 0;
  bool running_ = false;
  std::unique_ptr<Profiler> profiler_;
};

std::unique_ptr<PyProfiler> make_profiler(
    py::object schedule, int first_action, py::object on_trace_ready, std::uint32_t activities,
    bool all_api, std::optional<bool> detach, bool record_shapes, bool profile_memory,
    bool with_stack, bool with_flops, bool with_modules, bool capture_overload_names,
    bool accumulate, std::string output_dir, std::string spool_path, bool free_name,
    std::int64_t last_ns, double slow_step, std::uint32_t max_dumps, int dump_signal,
    bool quiet_dumps, std::optional<std::uint64_t> max_bytes,
    std::optional<std::uint64_t> disk_reserve_bytes, double budget_ratio, std::int64_t first_step) {
  ProfilerOptions options;
  options.first_step = first_step;
  for (const ProfilerActivity one : {ProfilerActivity::kCpu, ProfilerActivity::kCuda})
    if (activities & static_cast<std::uint32_t>(one)) options.activities.push_back(one);
  options.all_api = all_api;
  options.detach = detach;
  options.record_shapes = record_shapes;
  options.profile_memory = profile_memory;
  options.with_stack = with_stack;
  options.with_flops = with_flops;
  options.with_modules = with_modules;
  options.capture_overload_names = capture_overload_names;
  options.accumulate = accumulate;
  options.output_dir = std::move(output_dir);
  options.spool_path = std::move(spool_path);
  options.free_name = free_name;
  options.last_ns = last_ns;
  options.slow_step = slow_step;
  options.max_dumps = max_dumps;
  options.dump_signal = dump_signal;
  options.quiet_dumps = quiet_dumps;
  if (max_bytes) options.max_spool_bytes = *max_bytes;
  options.disk_reserve_bytes = disk_reserve_bytes;
  options.budget_ratio = budget_ratio;
  return std::make_unique<PyProfiler>(std::move(schedule), first_action, std::move(on_trace_ready),
                                      std::move(options));
}

// record_cupti/native_recording.h, from the library that the CUDA driver loads, too. False also
// when it cannot be loaded.
bool native_settings(const std::string& library, const std::optional<std::string>& lines) {
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return false;
  const auto set =
      reinterpret_cast<int (*)(const char*)>(dlsym(handle, "lanescope_native_settings"));
  return set != nullptr && set(lines ? lines->c_str() : nullptr) == 1;
}

// What `lanescope record` and the end of a recorded process need, without a profile.
void bind_recordings(py::module_& m) {
  m.def(
      "write_results",
      [](const std::string& command,
         const std::vector<std::pair<std::string, std::string>>& recordings, bool always_json,
         bool keep_recordings) {
        std::vector<record::ResultOptions> all;
        for (const auto& [recording, trace] : recordings)
          all.push_back({command, recording, trace, always_json, keep_recordings});
        py::list lines;
        for (const std::string& line : without_gil([&] { return record::write_results(all); }))
          lines.append(to_str(line));
        return lines;
      },
      py::arg("command"), py::arg("recordings"), py::arg("always_json"),
      py::arg("keep_recordings"));
  m.def(
      "recording_name",
      [](const std::string& program, std::optional<std::uint32_t> rank,
         const std::string& started) {
        return to_str(record::recording_name(program, rank, started));
      },
      py::arg("program"), py::arg("rank"), py::arg("started"));
  m.def("parse_byte_size", &parse_byte_size, py::arg("text"));
  m.def("parse_percent", &parse_percent, py::arg("text"));
  m.def("end_if_handler_is_stuck", &end_if_handler_is_stuck, py::arg("signal"), py::arg("seconds"));
  m.def("handler_has_begun", &handler_has_begun);
  m.def("native_settings", &native_settings, py::arg("library"), py::arg("lines"));
}

using ProfilerClass = py::class_<PyProfiler>;

void bind_windows(ProfilerClass& profiler) {
  profiler.def("start", &PyProfiler::start)
      .def("step", &PyProfiler::step, py::arg("action"), py::arg("number"))
      .def("stop", &PyProfiler::stop)
      .def("rest", &PyProfiler::rest)
      .def("can_go_on", &PyProfiler::can_go_on)
      .def("go_on", &PyProfiler::go_on, py::arg("action"), py::arg("step"))
      .def("begin", &PyProfiler::begin)
      .def("warm_up", [](PyProfiler& self) { without_gil([&] { self.profiler().warm_up(); }); })
      .def("open_window",
           [](PyProfiler& self) { without_gil([&] { self.profiler().open_window(); }); })
      .def("close_window",
           [](PyProfiler& self) { without_gil([&] { self.profiler().close_window(); }); })
      .def("pause", [](PyProfiler& self) { without_gil([&] { self.profiler().pause(); }); })
      .def("resume", [](PyProfiler& self) { without_gil([&] { self.profiler().resume(); }); })
      .def("cycle_count", [](PyProfiler& self) { return self.profiler().cycle_count(); })
      .def("is_window_open", [](PyProfiler& self) { return self.profiler().is_window_open(); });
}

void bind_what_was_recorded(ProfilerClass& profiler) {
  profiler.def("trace", &PyProfiler::trace)
      .def("export_chrome_trace", &PyProfiler::export_chrome_trace, py::arg("path"))
      .def(
          "add_metadata_json",
          [](PyProfiler& self, const std::string& key, const std::string& json) {
            value_or_raise(self.profiler().add_metadata_json(key, json));
          },
          py::arg("key"), py::arg("json"))
      .def("empty_reason",
           [](PyProfiler& self) {
             return to_str(without_gil([&] { return self.profiler().empty_reason(); }));
           })
      .def("window_count", [](PyProfiler& self) { return self.profiler().window_count(); })
      .def("spool_path", [](PyProfiler& self) { return to_str(self.profiler().spool_path()); })
      .def(
          "dump",
          [](PyProfiler& self, const std::string& path) {
            value_or_raise(without_gil([&] { return self.profiler().dump(path); }));
          },
          py::arg("path"))
      .def("dumps",
           [](PyProfiler& self) {
             py::list paths;
             for (const std::string& path : without_gil([&] { return self.profiler().dumps(); }))
               paths.append(to_str(path));
             return paths;
           })
      .def("take_warnings", &PyProfiler::take_warnings)
      .def("stats", &PyProfiler::stats);
}

}  // namespace

void bind_record(py::module_& m) {
  bind_recordings(m);
  ProfilerClass profiler(m, "Profiler");
  profiler.def(py::init(&make_profiler), py::kw_only(), py::arg("schedule"),
               py::arg("first_action"), py::arg("on_trace_ready"), py::arg("activities"),
               py::arg("all_api"), py::arg("detach"), py::arg("record_shapes"),
               py::arg("profile_memory"), py::arg("with_stack"), py::arg("with_flops"),
               py::arg("with_modules"), py::arg("capture_overload_names"), py::arg("accumulate"),
               py::arg("output_dir"), py::arg("spool_path"), py::arg("free_name") = false,
               py::arg("last_ns") = 0, py::arg("slow_step") = 0.0, py::arg("max_dumps") = 8,
               py::arg("dump_signal") = 0, py::arg("quiet_dumps") = false,
               py::arg("max_bytes") = py::none(), py::arg("disk_reserve_bytes") = py::none(),
               py::arg("budget_ratio") = 0.0, py::arg("first_step") = 0);
  bind_windows(profiler);
  bind_what_was_recorded(profiler);
}

}  // namespace lanescope::python
