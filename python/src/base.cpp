// base: Error becomes one exception class per code, all of them lanescope.Error.
#include <array>
#include <string>
#include <vector>

#include "bindings.h"

namespace lanescope::python {
namespace {

struct ErrorClass {
  Errc code;
  const char* name;
  const char* doc;
  const char* also;  // a built-in class that callers already catch
};

constexpr std::array<ErrorClass, 6> kErrorClasses = {{
    {Errc::kIo, "IoError", "The operating system refused: open, read, write, map.", "OSError"},
    {Errc::kCorruptInput, "CorruptInputError", "The bytes are not what their format promises.",
     "ValueError"},
    {Errc::kUnsupported, "UnsupportedError",
     "A known format or feature that lanescope does not read.", "NotImplementedError"},
    {Errc::kInvalidArgument, "InvalidArgumentError", "An argument that makes no sense.",
     "ValueError"},
    {Errc::kLimit, "LimitError", "A size from a file or an argument is over a documented limit.",
     "ValueError"},
    {Errc::kUnavailable, "UnavailableError", "A library, device or permission is missing.",
     "RuntimeError"},
}};

std::array<PyObject*, kErrorClasses.size()>& error_types() {
  static std::array<PyObject*, kErrorClasses.size()>
      types{};  // owned by the process, like the module
  return types;
}

}  // namespace

void raise(const Error& error) {
  PyObject* type = error_types()[static_cast<std::size_t>(error.code)];
  const py::object exception = py::reinterpret_borrow<py::object>(type)(to_str(error.message));
  exception.attr("code") = errc_name(error.code);
  exception.attr("offset") =
      error.offset ? py::object(py::int_(*error.offset)) : py::object(py::none());
  PyErr_SetObject(type, exception.ptr());
  throw py::error_already_set();
}

py::str to_str(std::string_view text) {
  PyObject* made =
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
  if (!made) throw py::error_already_set();
  return py::reinterpret_steal<py::str>(made);
}

py::list strings(const std::vector<std::string>& texts) {
  py::list list;
  for (const std::string& text : texts) list.append(to_str(text));
  return list;
}

void bind_base(py::module_& m) {
  PyObject* base =
      PyErr_NewExceptionWithDoc("lanescope.Error",
                                "Base of lanescope's errors. `code` is a stable word; `offset` is "
                                "a byte offset into the unpacked input or None.",
                                PyExc_Exception, nullptr);
  if (!base) throw py::error_already_set();
  m.add_object("Error", base);
  const py::module_ builtins = py::module_::import("builtins");
  for (const ErrorClass& entry : kErrorClasses) {
    const py::tuple bases = py::make_tuple(py::handle(base), builtins.attr(entry.also));
    const std::string name = std::string("lanescope.") + entry.name;
    PyObject* type = PyErr_NewExceptionWithDoc(name.c_str(), entry.doc, bases.ptr(), nullptr);
    if (!type) throw py::error_already_set();
    error_types()[static_cast<std::size_t>(entry.code)] = type;
    m.add_object(entry.name, py::reinterpret_borrow<py::object>(type));
  }
}

}  // namespace lanescope::python
