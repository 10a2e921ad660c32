// lanescope._core: the C++ layers as they are, one binding file per folder. What it means to users
// is in the package.
#include "bindings.h"

PYBIND11_MODULE(_core, m) {
  m.doc() = "The C++ side of lanescope. Use the package `lanescope`; names here may change.";
  lanescope::python::bind_base(m);
  lanescope::python::bind_model(m);
  lanescope::python::bind_format(m);
  lanescope::python::bind_names(m);
  lanescope::python::bind_analysis(m);
  lanescope::python::bind_torch_events(m);
  lanescope::python::bind_explain(m);
  lanescope::python::bind_ranks(m);
  lanescope::python::bind_record(m);
  lanescope::python::bind_record_function(m);
  lanescope::python::bind_sql(m);
  lanescope::python::bind_samples(m);
  lanescope::python::bind_stacks(m);
  lanescope::python::bind_tracer(m);
}
