#include "lanescope/names/kernel_name.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <random>

#include "lanescope/names/kernels/cxx_name.h"
#include "lanescope/names/kernels/mangled_name.h"
#include "lanescope/testing/sanitizers.h"

namespace lanescope::names {
namespace {

// The fields in the notation of the golden file: "library=cuBLAS; kind=gemm; ...".
std::string fields(const KernelName& name) {
  std::string text;
  const auto add = [&text](const char* key, const std::string& value) {
    if (value.empty()) return;
    if (!text.empty()) text += "; ";
    text.append(key).append("=").append(value);
  };
  const auto joined = [](const std::vector<std::string>& words) {
    std::string all;
    for (const std::string& word : words) all.append(all.empty() ? "" : "+").append(word);
    return all;
  };
  const auto number = [](const std::optional<std::uint32_t>& value) {
    return value ? std::to_string(*value) : std::string();
  };
  add("library", name.library);
  add("kind", name.kind);
  add("operation", name.operation);
  add("variant", name.variant);
  add("arch", name.architecture);
  add("in", name.input_type);
  add("acc", name.accumulate_type);
  add("out", name.output_type);
  if (name.tile) {
    std::string tile = std::to_string(name.tile->m);
    tile.append("x").append(std::to_string(name.tile->n));
    if (name.tile->k) tile.append("x").append(std::to_string(*name.tile->k));
    add("tile", tile);
  }
  add("stages", number(name.stages));
  add("warps", name.warps);
  add("cluster", name.cluster);
  add("layout", name.layout);
  add("epilogue", joined(name.epilogue));
  add("split_k", name.split_k ? "yes" : "");
  add("splits", number(name.split_k_count));
  add("fused", joined(name.fused));
  add("vec", number(name.vector_width));
  add("algorithm", name.algorithm);
  add("protocol", name.protocol);
  add("reduction", name.reduction);
  return text.empty() ? "unknown" : text;
}

struct Golden {
  std::string name, text, fields;
};

std::vector<Golden> golden_names() {
  std::ifstream file(std::string(LANESCOPE_SOURCE_DIR) + "/tests/golden/kernel_names.txt");
  std::vector<Golden> all;
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);)
    if (!line.empty() && !line.starts_with("#")) lines.push_back(line);
  for (std::size_t i = 0; i + 2 < lines.size(); i += 3)
    all.push_back({lines[i], lines[i + 1], lines[i + 2]});
  return all;
}

TEST(KernelNameTest, EveryNameOfTheGoldenFileSaysWhatAPersonReadInIt) {
  const auto all = golden_names();
  ASSERT_GE(all.size(), 100u);
  for (const Golden& golden : all) {
    const KernelName name = parse_kernel_name(golden.name);
    EXPECT_EQ(name.text, golden.text) << golden.name;
    EXPECT_EQ(fields(name), golden.fields) << golden.name;
  }
}

TEST(KernelNameTest, AnUnknownNameKeepsOnlyItsLastPart) {
  EXPECT_EQ(parse_kernel_name("void mine::deep::thing<int, a::b<3>>(int, float*)").text, "thing");
  EXPECT_FALSE(parse_kernel_name("void mine::deep::thing<int>(int)").known());
  EXPECT_EQ(parse_kernel_name("_ZN4mine5thingIfEEvPT_").text, "thing");
  EXPECT_EQ(parse_kernel_name("").text, "");
  EXPECT_EQ(parse_kernel_name("plain").text, "plain");
}

TEST(KernelNameTest, LettersWithoutAPublishedMeaningGetNone) {
  const KernelName name = parse_kernel_name("nvjet_sm90_tst_64x8_64x16_4x1_v_bz_TNT");
  EXPECT_EQ(name.input_type, "");      // "tst"
  EXPECT_EQ(name.cluster, "");         // "4x1"
  EXPECT_TRUE(name.epilogue.empty());  // "bz"
}

TEST(KernelNameTest, AFamilyPrefixWithRubbishBehindItGivesNoFields) {
  const KernelName name = parse_kernel_name("nvjet_x");
  EXPECT_EQ(name.library, "cuBLASLt nvjet");
  EXPECT_FALSE(name.tile || name.stages);
  EXPECT_FALSE(parse_kernel_name("Cijk_").known());
  EXPECT_FALSE(parse_kernel_name("ampere_").known());
  EXPECT_FALSE(parse_kernel_name("sm80_xmma_").known());
  EXPECT_FALSE(parse_kernel_name("mygemm_128x128_nn").known());  // no architecture: not cuBLAS's
}

TEST(KernelNameTest, MangledNamesReadLikeTheDemangledOnes) {
  using kernels::demangled_function;
  EXPECT_EQ(demangled_function("_Z1fv"), "f");
  EXPECT_EQ(demangled_function("_ZN2at4copyIfLi4EEEvPT_"), "at::copy<float, 4>");
  // S_ is at, S0_ at::copy, S1_ is at::Half: the third part that was completed.
  EXPECT_EQ(demangled_function("_ZN2at4copyINS_4HalfES1_EEvv"), "at::copy<at::Half, at::Half>");
  EXPECT_EQ(demangled_function("_Z1fILb1ELb0ELj7EEvv"), "f<true, false, 7u>");
  EXPECT_EQ(demangled_function("_Z1fIJifEEvv"), "f<int, float>");
  EXPECT_EQ(demangled_function("_ZN12_GLOBAL__N_11fIPKfEEvv"),
            "(anonymous namespace)::f<float const*>");
  EXPECT_EQ(demangled_function("_Z1fIDF16bDF16_EvT_"), "f<std::bfloat16_t, _Float16>");
  EXPECT_EQ(demangled_function("_Z1fIZ1gvEUlfE_EvT_"), "f<g()::{lambda(float)#1}>");
  EXPECT_EQ(demangled_function("_Z1fIXadL_Z1giEEEvv"), "f<&g>");
  EXPECT_EQ(demangled_function("_ZN1a1fIXplLi1ELi2EEEEvv"), "a::f");  // an expression is not read
  EXPECT_EQ(demangled_function("_Z"), std::nullopt);
  EXPECT_EQ(demangled_function("_Z999999999999x"), std::nullopt);
  EXPECT_EQ(demangled_function("_ZN1aIS5_E1fEv"), "a");
}

TEST(KernelNameTest, BracketsAreCutWhereTheyBelong) {
  const auto name = kernels::cut_cxx_name(
      "std::enable_if<(((8)>(0)))&&a::b<c>::d, void>::type v::f<x::y<1, 2>, (e)3>(int, g<h>)");
  EXPECT_EQ(name.qualified, "v::f<x::y<1, 2>, (e)3>");
  EXPECT_EQ(name.scope, "v");
  EXPECT_EQ(name.base, "f");
  EXPECT_EQ(name.arguments, (std::vector<std::string_view>{"x::y<1, 2>", "(e)3"}));
  EXPECT_EQ(kernels::cut_cxx_name("void (anonymous namespace)::k<1>(int)").scope,
            "(anonymous namespace)");
}

// "_Z1fI1aIiiES0_IS1_S1_ES0_IS2_S2_E...": each argument holds the one before it twice, 2^34 copies
// of the first in the last.
TEST(KernelNameTest, ANameThatGrowsWithoutEndIsGivenUp) {
  std::string bomb = "_Z1fI1aIiiE";
  const std::string_view digits = "123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  for (const char digit : digits.substr(0, 34)) {
    const std::string last = std::string("S").append(1, digit).append("_");
    bomb.append("S0_I").append(last).append(last).append("E");
  }
  bomb += "EvT_";
  // Written out, it would have 2^34 parts: the test would run into its time limit.
  EXPECT_EQ(kernels::demangled_function(bomb), "f");
  EXPECT_EQ(kernels::demangled_function("_Z1fI1aIiiES0_IS1_S1_EEvT_"),
            "f<a<int, int>, a<a<int, int>, a<int, int>>>");
}

std::string repeated(std::string_view part, std::size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += part;
  return text;
}

// A pass that looked at every byte for every byte would run into the test's time limit.
TEST(KernelNameTest, HugeNamesOfAnythingAreReadAsFarAsTheFirst64KiB) {
  for (const char* part : {"<",
                           ">",
                           "(",
                           ")",
                           "<(",
                           "::",
                           "a::",
                           "a<",
                           ",",
                           "_",
                           "x",
                           "{",
                           " ",
                           "\x01",
                           "\xff",
                           "N1a",
                           "I1a",
                           "S_",
                           "at::native::elementwise_kernel<1, 2, at::native::gpu_kernel_impl<",
                           "_add",
                           "1x",
                           "ZN",
                           "PPPP",
                           "Li0E",
                           "lambda()#1}::",
                           "Cijk_",
                           "operator()"}) {
    for (const char* front :
         {"", "_Z", "_ZN", "_Z1fI", "void at::native::vectorized_elementwise_kernel<4, ",
          "triton_poi_fused_", "nvjet_", "ampere_sgemm_", "Cijk_A",
          "void cutlass::Kernel<cutlass_80_"}) {
      const std::string huge = front + repeated(part, 130'000);
      const KernelName name = parse_kernel_name(huge);
      EXPECT_LE(name.text.size(), kLongestText);
      EXPECT_EQ(parse_kernel_name(huge + huge), name) << front << part;
    }
  }
  EXPECT_LE(parse_kernel_name(repeated("a<(", 30'000'000)).text.size(), kLongestText);
}

TEST(KernelNameTest, NoTextIsTooStrange) {
  std::mt19937 random(20);  // fixed: the same names in every run
  const auto all = golden_names();
  const std::string_view pieces = "<>(){}[]::,_ *&0123456789xabNZSITEJLX";
  for (int round = 0; round < testing::rounds(20'000); ++round) {
    std::string name = all[random() % all.size()].name;
    for (int change = 0; change < 4; ++change) {
      const std::size_t at = random() % (name.size() + 1);
      const char letter =
          random() % 2 ? pieces[random() % pieces.size()] : static_cast<char>(random() % 256);
      switch (random() % 4) {
        case 0:
          name.insert(at, 1, letter);
          break;
        case 1:
          if (at < name.size()) name[at] = letter;
          break;
        case 2:
          name.resize(at);
          break;
        default:
          name.insert(at, name.substr(0, random() % (at + 1)));
          break;
      }
      if (name.size() > 4000) name.resize(4000);
    }
    const KernelName parsed = parse_kernel_name(name);
    ASSERT_LE(parsed.text.size(), kLongestText);
    ASSERT_EQ(parsed, parse_kernel_name(name));  // the same name says the same thing twice
    ASSERT_TRUE(!parsed.known() || !parsed.text.empty()) << name;
  }
}

}  // namespace
}  // namespace lanescope::names
