#include "lanescope/cli/help.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "lanescope/format/formats.h"

namespace lanescope::cli {
namespace {

constexpr std::size_t kLineColumns = 100;
constexpr std::size_t kMostLeftColumns = 36;

constexpr char kFirstSteps[] = R"(First steps:
  lanescope record -- python3 train.py    run a script unchanged and record it
  lanescope explain trace.json.gz         what bounds a step, where its time goes, what to fix first
  lanescope view trace.json.gz            look at it in the browser: lanes, gaps, findings
  lanescope table trace.json.gz           where the time went: one row per operator
  lanescope tree trace.json.gz --step 3   which operator launched which kernel, and when
  lanescope doctor                        whether the GPU can be recorded here
)";

constexpr char kRootEpilogue[] = R"(
lanescope help COMMAND explains a command with examples.
)";

constexpr char kExitCodes[] = R"(
Exit codes:
  0  done
  1  the output could not be written, or something unexpected failed
  2  the input is not a trace or cannot be read, or the flags are wrong
)";

struct Row {
  std::string left, right;
};

// Breaks between words so that each line of the right column fits.
std::string two_columns(const std::vector<Row>& rows) {
  std::size_t widest = 0;
  for (const Row& row : rows) {
    if (row.left.size() <= kMostLeftColumns) widest = std::max(widest, row.left.size());
  }
  std::string out;
  for (const Row& row : rows) {
    out += "  " + row.left;
    std::size_t column = 2 + row.left.size();
    const std::size_t right = 2 + widest + 2;
    if (column + 2 > right) {
      out += "\n";
      column = 0;
    }
    out.append(right - column, ' ');
    column = right;
    std::string_view text = row.right;
    while (!text.empty()) {
      const std::string_view word = text.substr(0, text.find(' '));
      text.remove_prefix(std::min(text.size(), word.size() + 1));
      if (column != right && column + 1 + word.size() > kLineColumns) {
        out += "\n";
        out.append(right, ' ');
        column = right;
      } else if (column != right) {
        out += " ";
        ++column;
      }
      out += word;
      column += word.size();
    }
    out += "\n";
  }
  return out;
}

std::string flag_left(const CLI::Option* option) {
  std::string names;
  for (const std::string& name : option->get_snames())
    names += (names.empty() ? "-" : ", -") + name;
  for (const std::string& name : option->get_lnames())
    names += (names.empty() ? "--" : ", --") + name;
  if (!option->get_option_text().empty()) names += " " + option->get_option_text();
  return names;
}

std::string root_help(const CLI::App& app) {
  std::vector<Row> commands, flags;
  for (const CLI::App* sub : app.get_subcommands({}))
    commands.push_back({sub->get_name(), sub->get_description()});
  for (const CLI::Option* option : app.get_options({}))
    flags.push_back({flag_left(option), option->get_description()});
  const std::string inputs = fmt::format(
      "Reads traces of torch.profiler, Kineto, lanescope, Perfetto and Nsight Systems:\n{}.\n",
      format::endings_text(format::format_endings()));
  return fmt::format("{}\n\n{}\n{}\nCommands:\n{}\nFlags:\n{}{}{}", app.get_description(),
                     kFirstSteps, inputs, two_columns(commands), two_columns(flags), kRootEpilogue,
                     kExitCodes);
}

class HelpFormatter : public CLI::Formatter {
 public:
  explicit HelpFormatter(std::string usage_tail) : usage_tail_(std::move(usage_tail)) {}
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;

 private:
  std::string usage_tail_;
};

std::string HelpFormatter::make_help(const CLI::App* app, std::string /*name*/,
                                     CLI::AppFormatMode /*mode*/) const {
  if (app->get_parent() == nullptr) return root_help(*app);
  std::vector<Row> arguments, flags;
  std::string usage;
  for (const CLI::Option* option : app->get_options({})) {
    if (option->nonpositional()) {
      flags.push_back({flag_left(option), option->get_description()});
    } else {
      const std::string name =
          option->get_name(true, false) + (option->get_items_expected_max() > 1 ? "..." : "");
      usage += option->get_required() ? " " + name : " [" + name + "]";
      arguments.push_back({name, option->get_description()});
    }
  }
  std::string out =
      fmt::format("Usage: lanescope {}{} [FLAGS]{}\n\n", app->get_name(), usage, usage_tail_);
  out += app->get_description() + "\n";
  if (!arguments.empty()) out += "\nArguments:\n" + two_columns(arguments);
  out += "\nFlags:\n" + two_columns(flags);
  if (!app->get_footer().empty()) out += "\n" + app->get_footer();
  return out + kExitCodes;
}

}  // namespace

std::string version_line() { return "lanescope " LANESCOPE_VERSION; }

std::shared_ptr<CLI::FormatterBase> help_formatter(const std::string& usage_tail) {
  return std::make_shared<HelpFormatter>(usage_tail);
}

std::string help_text(const CLI::App& app) {
  return app.get_formatter()->make_help(&app, "", CLI::AppFormatMode::Normal);
}

void write_help(Output& output, const std::string& help) {
  std::string_view rest = help;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.size(), rest.find('\n') + 1);
    const std::string_view line = rest.substr(0, end);
    if (line.size() > 2 && line.front() != ' ' && line.substr(line.size() - 2) == ":\n") {
      output.write_heading(line);
    } else {
      output.write(line);
    }
    rest.remove_prefix(end);
  }
}

}  // namespace lanescope::cli
