// names: what the name of a kernel or of another event says.
#include <pybind11/stl.h>

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "bindings.h"
#include "lanescope/names/event_name.h"
#include "lanescope/names/kernel_name.h"

namespace lanescope::python {
namespace {

using names::EventName;
using names::KernelName;

// A text of a name as Python has it: absent is None.
template <typename Name, std::string Name::*kField>
std::optional<py::str> text_of(const Name& name) {
  return (name.*kField).empty() ? std::nullopt : std::optional<py::str>(to_str(name.*kField));
}

void bind_kernel_name(py::module_& m) {
  py::class_<KernelName>(m, "KernelName")
      .def_property_readonly("text", [](const KernelName& name) { return to_str(name.text); })
      .def_property_readonly("known", &KernelName::known)
      .def_property_readonly("library", &text_of<KernelName, &KernelName::library>)
      .def_property_readonly("kind", &text_of<KernelName, &KernelName::kind>)
      .def_property_readonly("operation", &text_of<KernelName, &KernelName::operation>)
      .def_property_readonly("variant", &text_of<KernelName, &KernelName::variant>)
      .def_property_readonly("architecture", &text_of<KernelName, &KernelName::architecture>)
      .def_property_readonly("input_type", &text_of<KernelName, &KernelName::input_type>)
      .def_property_readonly("accumulate_type", &text_of<KernelName, &KernelName::accumulate_type>)
      .def_property_readonly("output_type", &text_of<KernelName, &KernelName::output_type>)
      .def_property_readonly(
          "tile",
          [](const KernelName& name) {
            using Tile = std::tuple<std::uint32_t, std::uint32_t, std::optional<std::uint32_t>>;
            return name.tile ? std::optional<Tile>(std::in_place, name.tile->m, name.tile->n,
                                                   name.tile->k)
                             : std::nullopt;
          })
      .def_readonly("stages", &KernelName::stages)
      .def_property_readonly("warps", &text_of<KernelName, &KernelName::warps>)
      .def_property_readonly("cluster", &text_of<KernelName, &KernelName::cluster>)
      .def_property_readonly("layout", &text_of<KernelName, &KernelName::layout>)
      .def_property_readonly("epilogue",
                             [](const KernelName& name) { return strings(name.epilogue); })
      .def_readonly("split_k", &KernelName::split_k)
      .def_readonly("split_k_count", &KernelName::split_k_count)
      .def_property_readonly("fused", [](const KernelName& name) { return strings(name.fused); })
      .def_readonly("vector_width", &KernelName::vector_width)
      .def_property_readonly("algorithm", &text_of<KernelName, &KernelName::algorithm>)
      .def_property_readonly("protocol", &text_of<KernelName, &KernelName::protocol>)
      .def_property_readonly("reduction", &text_of<KernelName, &KernelName::reduction>)
      .def("__repr__", [](const KernelName& name) {
        return to_str("<lanescope.KernelName " + name.text + ">");
      });
  m.def(
      "kernel_name", [](const std::string& text) { return names::parse_kernel_name(text); },
      py::arg("text"));
}

void bind_event_name(py::module_& m) {
  py::class_<EventName>(m, "EventName")
      .def_property_readonly("text", [](const EventName& name) { return to_str(name.text); })
      .def_property_readonly("known", &EventName::known)
      .def_property_readonly(
          "kind", [](const EventName& name) { return names::event_kind_name(name.kind); })
      .def_property_readonly("what", &text_of<EventName, &EventName::what>)
      .def_property_readonly("cpu_waits", &text_of<EventName, &EventName::cpu_waits>)
      .def_property_readonly("gpu_work", &text_of<EventName, &EventName::gpu_work>)
      .def_property_readonly("note", &text_of<EventName, &EventName::note>)
      .def_property_readonly("rule", &text_of<EventName, &EventName::rule>)
      .def_property_readonly("group", [](const EventName& name) { return to_str(name.group); })
      .def_property_readonly("details",
                             [](const EventName& name) {
                               py::dict details;
                               for (const auto& [key, value] : name.details)
                                 details[to_str(key)] = to_str(value);
                               return details;
                             })
      .def("__repr__",
           [](const EventName& name) { return to_str("<lanescope.EventName " + name.text + ">"); });
  m.def(
      "event_name", [](const std::string& text) { return names::explain_event_name(text); },
      py::arg("text"));
}

}  // namespace

void bind_names(py::module_& m) {
  bind_kernel_name(m);
  bind_event_name(m);
}

}  // namespace lanescope::python
