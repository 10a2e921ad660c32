// What the name of a Python frame says. torch.profiler's with_stack and lanescope's recorder write
//   train.py(88): step                                    a function: its file and the line where it begins
//   nn.Module: Linear_0                                   the call of a module: its class and its number
//   <built-in method linear of type object at 0x7f...>    a function written in C
//   <built-in function linear>
#pragma once
#include <string_view>

namespace lanescope::names {

// The parts of the name. A part that the name does not have is empty.
struct PythonFrame {
  std::string_view file, line;                   // "train.py" or "<frozen os>"; digits
  std::string_view function;                     // "step", "linear"
  std::string_view object;                       // of a method written in C: "type", "Tensor"
  std::string_view module_class, module_number;  // "Linear", "0"
  bool is_module = false;
  bool is_of_library = false;  // library_frames.h
  // has_line_mark: the name contains "): ". has_python_file_mark: it contains ".py(".
  bool has_line_mark = false, has_python_file_mark = false;

  // True: a function of the program itself, neither a library's nor the call of a module.
  bool is_of_program() const { return has_python_file_mark && !is_of_library && !is_module; }
};

// O(length), plus a search in the list of packages in library_frames.cpp. For many slices, use analysis/frame_table.h instead.
// Any thread.
PythonFrame read_python_frame(std::string_view name);

}  // namespace lanescope::names
