// `lanescope sql`: questions to a trace in SQL, one-shot, from a file or a pipe, or at a prompt.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <sstream>

#include "lanescope/base/byte_size.h"
#include "lanescope/base/duration.h"
#include "lanescope/cli/command_line.h"
#include "lanescope/cli/open_trace.h"
#include "lanescope/cli/sql_prompt.h"
#include "lanescope/cli/text.h"
#include "lanescope/cli/trace_part.h"
#include "lanescope/model/table_schema.h"
#include "lanescope/sql/database.h"
#include "lanescope/sql/result_text.h"

namespace lanescope::cli {
namespace {

constexpr std::int64_t kUsualMemory = std::int64_t{4} << 30;
constexpr std::int64_t kPromptRows = 100;
constexpr std::size_t kMostQueryFile = 1 << 20;

struct SqlFlags {
  std::string path, query, file, timeout, memory;
  PartFlags part;
  std::optional<std::int64_t> row_limit;
  std::optional<int> width = 80;
  bool csv = false, json = false;
};

struct Session {
  sql::Database& database;
  sql::ResultOptions form;
  sql::Limits limits;
  Output& output;
};

std::string tables_text() {
  std::string text;
  const auto add = [&](const char* heading, std::span<const TableSchema> tables) {
    text += heading;
    for (const TableSchema& table : tables)
      text += fmt::format("  {:<16}  {}\n", table.name, table.meaning);
  };
  add("Tables\n", sql_tables());
  add("Views\n", sql_views());
  return text;
}

constexpr char kDotHelp[] = R"(.tables           the tables and views
.schema [TABLE]   columns with units and meaning
.help             this text
.quit             the end; so does Ctrl-D
A query ends with ";". Ctrl-C ends a query that runs. Times are nanoseconds.
)";

// False: the command is unknown.
bool run_dot_command(std::string_view line, Output& output) {
  while (!line.empty() && (line.back() == ' ' || line.back() == ';')) line.remove_suffix(1);
  const std::string_view word = line.substr(0, line.find(' '));
  std::string_view rest = line.substr(word.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  if (word == ".tables") {
    output.write(tables_text());
  } else if (word == ".schema") {
    const Result<std::string> text = sql::Database::schema_text(rest);
    if (text)
      output.write(*text);
    else
      output.complain("sql: " + message_of(text.error()));
    return text.has_value();
  } else if (word == ".help") {
    output.write(kDotHelp);
  } else {
    output.complain(fmt::format("sql: there is no command '{}'; .help lists them", word));
    return false;
  }
  return true;
}

bool run_query(std::string_view query, Session& session) {
  const auto writer = sql::make_result_writer(
      session.form, [&](std::string_view text) { session.output.write(text); });
  const Result<void> done = session.database.run(query, session.limits, *writer);
  if (writer->was_cut())
    session.output.note(
        fmt::format("(The first {} rows; --row-limit N shows more.)", *session.form.row_limit));
  if (!done) session.output.complain("sql: " + message_of(done.error()));
  return done.has_value();
}

// Dot commands are lines of their own before a statement; the rest is SQL. Ends at the first error.
bool run_script(const std::string& text, Session& session) {
  std::istringstream lines(text);
  std::string line, statement;
  while (std::getline(lines, line)) {
    if (statement.empty() && line.starts_with('.')) {
      if (!run_dot_command(line, session.output)) return false;
      continue;
    }
    statement += line + "\n";
    if (!sql::is_complete(statement)) continue;
    if (!run_query(statement, session)) return false;
    statement.clear();
  }
  return statement.find_first_not_of(" \t\n") == std::string::npos || run_query(statement, session);
}

std::vector<std::string> words_to_complete() {
  std::vector<std::string> words{".tables", ".schema", ".help",    ".quit",    "SELECT",
                                 "FROM",    "WHERE",   "GROUP BY", "ORDER BY", "LIMIT",
                                 "JOIN",    "USING",   "count(*)", "sum(dur)", "extract_arg("};
  for (const auto& schemas : {sql_tables(), sql_views()})
    for (const TableSchema& table : schemas) {
      words.emplace_back(table.name);
      for (const ColumnSchema& column : table.columns) words.emplace_back(column.name);
    }
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  return words;
}

int run_prompt(Session& session) {
  const std::unique_ptr<LineReader> reader = make_line_reader(words_to_complete());
  session.limits.is_stopped = was_interrupted;
  if (!session.form.row_limit) session.form.row_limit = kPromptRows;
  std::fputs(".tables lists the tables, .schema TABLE its columns, .help the rest.\n", stdout);
  std::string statement, line;
  for (;;) {
    forget_interrupt();
    const LineEnd end = reader->read(statement.empty() ? "sql> " : "...> ", line);
    if (end == LineEnd::kClosed) break;
    if (end == LineEnd::kInterrupted) {
      statement.clear();
      continue;
    }
    if (statement.empty() && line.starts_with('.')) {
      if (line == ".quit" || line == ".exit") break;
      run_dot_command(line, session.output);
      reader->remember(line);
    } else {
      statement += statement.empty() ? line : "\n" + line;
      if (statement.find_first_not_of(" \n") == std::string::npos) statement.clear();
      if (statement.empty() || !sql::is_complete(statement)) continue;
      forget_interrupt();
      run_query(statement, session);
      std::replace(statement.begin(), statement.end(), '\n', ' ');
      reader->remember(statement);
      statement.clear();
    }
    session.output.flush();
  }
  std::fputs("\n", stdout);
  return kOk;
}

Result<std::string> read_all(std::istream& in, const std::string& name) {
  std::string text;
  std::string block(64 * 1024, '\0');
  while (in.read(block.data(), static_cast<std::streamsize>(block.size())) || in.gcount() > 0) {
    text.append(block, 0, static_cast<std::size_t>(in.gcount()));
    if (text.size() > kMostQueryFile)
      return Error{Errc::kLimit, "expected at most 1 MiB of SQL in " + name};
  }
  return text;
}

// Nothing: a prompt is wanted.
Result<std::optional<std::string>> find_query(const SqlFlags& flags) {
  if (!flags.query.empty()) return std::optional<std::string>(flags.query);
  if (!flags.file.empty()) {
    std::ifstream file(flags.file);
    if (!file)
      return Error{Errc::kIo,
                   fmt::format("expected a file with SQL, cannot open '{}'", flags.file)};
    LANESCOPE_TRY(std::string text, read_all(file, "'" + flags.file + "'"));
    return std::optional<std::string>(std::move(text));
  }
  if (flags.path == "-")
    return Error{Errc::kInvalidArgument,
                 "expected a query after TRACE, because standard input is the trace"};
  if (isatty(STDIN_FILENO) != 0) return std::optional<std::string>();
  LANESCOPE_TRY(std::string text, read_all(std::cin, "standard input"));
  return std::optional<std::string>(std::move(text));
}

Result<sql::Limits> find_limits(const SqlFlags& flags) {
  sql::Limits limits;
  if (!flags.timeout.empty()) {
    const auto ns = parse_duration_ns(flags.timeout);
    if (!ns)
      return Error{
          Errc::kInvalidArgument,
          fmt::format("--timeout expects a time such as 10s or 500ms; found '{}'", flags.timeout)};
    limits.timeout = std::chrono::nanoseconds(*ns);
  }
  std::int64_t bytes = kUsualMemory;
  if (!flags.memory.empty()) {
    const auto size = parse_byte_size(flags.memory);
    if (!size || *size < (1u << 20) || *size > INT64_MAX)
      return Error{Errc::kInvalidArgument,
                   fmt::format("--memory expects a size of at least 1MiB, such as 2GiB; found '{}'",
                               flags.memory)};
    bytes = static_cast<std::int64_t>(*size);
  }
  sql::limit_memory_of_process(bytes);
  return limits;
}

int run_sql(const SqlFlags& flags, Output& output) {
  const Result<sql::Limits> limits = find_limits(flags);
  if (!limits) {
    output.complain("sql: " + message_of(limits.error()));
    return kUsage;
  }
  const Result<std::optional<std::string>> query = find_query(flags);
  if (!query) {
    output.complain("sql: " + message_of(query.error()));
    return kUsage;
  }
  int code = kOk;
  std::optional<Trace> trace =
      open_part(flags.path, flags.part, "sql", view::Edges::kCut, output, &code);
  if (!trace) return code;
  const auto database = sql::Database::open(std::make_shared<const Trace>(*std::move(trace)));
  if (!database) {
    output.complain("sql: " + message_of(database.error()));
    return kFailed;
  }
  sql::ResultOptions form;
  form.form = flags.csv    ? sql::ResultForm::kCsv
              : flags.json ? sql::ResultForm::kJson
                           : sql::ResultForm::kTable;
  if (flags.row_limit) form.row_limit = static_cast<std::size_t>(*flags.row_limit);
  if (flags.width) form.cell_width = static_cast<std::size_t>(*flags.width);
  Session session{**database, form, *limits, output};
  if (!*query) return run_prompt(session);
  return run_script(**query, session) ? kOk : kUsage;
}

}  // namespace

void add_sql_command(CommandLine& line) {
  Command command = line.command("sql", "ask a trace in SQL: tables of slices, kernels, operators");
  const auto flags = std::make_shared<SqlFlags>();
  command.argument("TRACE", &flags->path, kTraceArgument, {Completes::kFile});
  command
      .argument("QUERY", &flags->query,
                "SQL, or .tables, or .schema TABLE; without it, --file or standard input "
                "has it, and a terminal gets a prompt")
      .not_required();
  add_part_flags(command, &flags->part);
  add_category_flag(command, &flags->part);
  command.text_flag("--file", &flags->file, "FILE", "read the SQL from this file",
                    {Completes::kFile});
  command.number_flag("--row-limit", &flags->row_limit, 0, std::numeric_limits<std::int64_t>::max(),
                      "rows printed of each query (default: all; at the prompt 100)");
  command.width_flag("--width", &flags->width, "cut longer texts of a table (default 80)");
  command.text_flag("--timeout", &flags->timeout, "TIME",
                    "end a query after this time: 10s, 500ms (default: none)");
  command.text_flag("--memory", &flags->memory, "SIZE",
                    "memory for sorting and grouping (default 4GiB)");
  const Option json = command.switch_flag(
      "--json", &flags->json, "a JSON list of objects for each query, with whole texts");
  const Option csv = command.switch_flag("--csv", &flags->csv, "CSV with one header line");
  json.excludes(csv);
  command.epilogue(R"(Examples:
  lanescope sql trace.json.gz "SELECT name, count(*), sum(dur) FROM kernel GROUP BY name ORDER BY 3 DESC LIMIT 10"
                                            the kernels that took most time, in nanoseconds
  lanescope sql trace.json.gz "SELECT * FROM device_gap LIMIT 5" --json
                                            when the GPU had no work, and what it waited for
  lanescope sql trace.json.gz               a prompt; .tables and .schema kernel show what there is

Names are Perfetto's where they mean the same: slice, ts, dur, track_id, extract_arg(arg_set_id, 'key').
All tables and columns: docs/formats/sql_tables.md. The trace never changes; only reading is allowed.
)");
  command.runs([flags](Output& output) -> int { return run_sql(*flags, output); });
}

}  // namespace lanescope::cli
