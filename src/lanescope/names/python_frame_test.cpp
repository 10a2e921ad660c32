#include "lanescope/names/python_frame.h"

#include <gtest/gtest.h>

#include <string>

namespace lanescope::names {
namespace {

TEST(PythonFrameTest, AFunctionHasAFileALineAndAName) {
  const PythonFrame own = read_python_frame("net/train.py(88): step");
  EXPECT_EQ(own.file, "net/train.py");
  EXPECT_EQ(own.line, "88");
  EXPECT_EQ(own.function, "step");
  EXPECT_FALSE(own.is_module || own.is_of_library);
  EXPECT_TRUE(own.has_line_mark && own.has_python_file_mark);

  const PythonFrame lambda = read_python_frame("a (old).py(3): f(x): <lambda>");
  EXPECT_EQ(lambda.file, "");  // the last brackets hold no line
  EXPECT_TRUE(lambda.has_line_mark);

  const PythonFrame frozen = read_python_frame("<frozen os>(680): __getitem__");
  EXPECT_EQ(frozen.file, "<frozen os>");
  EXPECT_EQ(frozen.line, "680");
  EXPECT_TRUE(frozen.is_of_library);
  EXPECT_FALSE(frozen.has_python_file_mark);
}

TEST(PythonFrameTest, AModuleHasAClassAndANumber) {
  const PythonFrame numbered = read_python_frame("nn.Module: Conv2d_14");
  EXPECT_TRUE(numbered.is_module);
  EXPECT_EQ(numbered.module_class, "Conv2d");
  EXPECT_EQ(numbered.module_number, "14");
  const PythonFrame alone = read_python_frame("nn.Module: Conv2d");
  EXPECT_EQ(alone.module_class, "Conv2d");
  EXPECT_EQ(alone.module_number, "");
  EXPECT_EQ(read_python_frame("nn.Module: ").module_class, "");
}

TEST(PythonFrameTest, AFunctionWrittenInCHasNoFile) {
  const PythonFrame method =
      read_python_frame("<built-in method linear of type object at 0x7f80c0de>");
  EXPECT_EQ(method.function, "linear");
  EXPECT_EQ(method.object, "type");
  EXPECT_EQ(method.file, "");
  EXPECT_TRUE(method.is_of_library);
  EXPECT_EQ(read_python_frame("<built-in function linear>").function, "linear");
}

TEST(PythonFrameTest, OtherTextsHaveNoParts) {
  for (const char* text : {"", "train.py", "train.py(34)", "train.py(x): forward", "train.py(34): ",
                           "(34): forward", "<built-in method >", "<built-in method linear"}) {
    const PythonFrame frame = read_python_frame(text);
    EXPECT_EQ(std::string(frame.file).append(frame.function).append(frame.module_class), "")
        << text;
  }
}

}  // namespace
}  // namespace lanescope::names
