#include "lanescope/sql/result_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "lanescope/report/json_writer.h"

namespace lanescope::sql {
namespace {

constexpr std::size_t kRowsForWidths = 1000;

using Write = std::function<void(std::string_view)>;

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes)
    text += fmt::format("{:02X}", static_cast<unsigned>(static_cast<unsigned char>(byte)));
  return text;
}

bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; }

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

// One line of at most `most` characters.
std::string table_text(std::string_view text, std::optional<std::size_t> most) {
  std::string line(text);
  for (char& c : line)
    if (c == '\n' || c == '\r' || c == '\t' || c == '\0') c = ' ';
  if (!most || width_of(line) <= *most) return line;
  const std::size_t kept = *most > 3 ? *most - 3 : 0;
  std::size_t at = 0, characters = 0;
  for (; at < line.size(); ++at)
    if (begins_character(line[at]) && characters++ == kept) break;
  return line.substr(0, at) + std::string("...").substr(0, *most);
}

class Writer : public ResultWriter {
 public:
  Writer(const ResultOptions& options, Write write) : options_(options), write_(std::move(write)) {}

  void begin(const std::vector<std::string>& columns) final {
    rows_ = 0;
    cut_ = false;
    start(columns);
    is_first_ = false;
  }
  bool row(std::span<const Cell> cells) final {
    if (options_.row_limit && rows_ >= *options_.row_limit) {
      cut_ = true;
      return false;
    }
    ++rows_;
    add(cells);
    return true;
  }
  bool was_cut() const final { return cut_; }

 protected:
  virtual void start(const std::vector<std::string>& columns) = 0;
  virtual void add(std::span<const Cell> cells) = 0;
  void write(std::string_view text) { write_(text); }
  const ResultOptions& options() const { return options_; }
  std::size_t rows() const { return rows_; }
  bool is_first() const { return is_first_; }  // of the statements

 private:
  ResultOptions options_;
  Write write_;
  std::size_t rows_ = 0;
  bool cut_ = false, is_first_ = true;
};

class TableWriter final : public Writer {
 public:
  using Writer::Writer;

 private:
  struct Text {
    std::string text;
    bool right = false;
  };

  void start(const std::vector<std::string>& columns) override {
    if (!is_first()) write("\n");
    names_ = columns;
    widths_.clear();
    right_.assign(columns.size(), true);
    waiting_.clear();
    is_open_ = false;
  }

  void add(std::span<const Cell> cells) override {
    std::vector<Text> line;
    for (const Cell& cell : cells) line.push_back(text_of(cell));
    if (is_open_) return write_line(line);
    waiting_.push_back(std::move(line));
    if (waiting_.size() == kRowsForWidths) open();
  }

  void end() override {
    if (!is_open_) open();
  }

  Text text_of(const Cell& cell) const {
    switch (cell.type) {
      case CellType::kNull:
        return {"NULL", false};
      case CellType::kInteger:
        return {std::to_string(cell.integer), true};
      case CellType::kReal:
        return {fmt::format("{:.6g}", cell.real), true};
      case CellType::kText:
        return {table_text(cell.text, options().cell_width), false};
      case CellType::kBlob:
        return {table_text("x'" + hex(cell.text.substr(0, 4096)) + "'", options().cell_width),
                false};
    }
    return {};
  }

  // The widths are known: prints what has waited for them.
  void open() {
    is_open_ = true;
    for (const std::string& name : names_) widths_.push_back(width_of(name));
    for (const auto& line : waiting_)
      for (std::size_t i = 0; i < line.size(); ++i) {
        widths_[i] = std::max(widths_[i], width_of(line[i].text));
        if (!line[i].right && line[i].text != "NULL") right_[i] = false;
      }
    std::vector<Text> head, rule;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      head.push_back({table_text(names_[i], std::nullopt), right_[i]});
      rule.push_back({std::string(widths_[i], '-'), false});
    }
    write_line(head);
    write_line(rule);
    for (const auto& line : waiting_) write_line(line);
    waiting_.clear();
  }

  void write_line(const std::vector<Text>& line) {
    std::string text;
    for (std::size_t i = 0; i < line.size(); ++i) {
      const std::size_t width = width_of(line[i].text);
      const std::size_t space = widths_[i] > width ? widths_[i] - width : 0;
      if (i > 0) text += "  ";
      if (right_[i]) text.append(space, ' ');
      text += line[i].text;
      if (!right_[i] && i + 1 < line.size()) text.append(space, ' ');
    }
    write(text + "\n");
  }

  std::vector<std::string> names_;
  std::vector<std::size_t> widths_;
  std::vector<bool> right_;
  std::vector<std::vector<Text>> waiting_;
  bool is_open_ = false;
};

class CsvWriter final : public Writer {
 public:
  using Writer::Writer;

 private:
  static std::string quoted(std::string_view text) {
    if (text.find_first_of("\",\r\n") == std::string_view::npos) return std::string(text);
    std::string out = "\"";
    for (const char c : text) out.append(c == '"' ? 2 : 1, c);
    return out + '"';
  }
  static std::string text_of(const Cell& cell) {
    switch (cell.type) {
      case CellType::kNull:
        return {};
      case CellType::kInteger:
        return std::to_string(cell.integer);
      case CellType::kReal:
        return fmt::format("{}", cell.real);
      case CellType::kText:
        return cell.text.empty() ? "\"\"" : quoted(cell.text);
      case CellType::kBlob:
        return hex(cell.text);
    }
    return {};
  }
  void start(const std::vector<std::string>& columns) override {
    std::string line = is_first() ? "" : "\r\n";
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (i > 0) line += ',';
      line += quoted(columns[i]);
    }
    write(line + "\r\n");
  }
  void add(std::span<const Cell> cells) override {
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (i > 0) line += ',';
      line += text_of(cells[i]);
    }
    write(line + "\r\n");
  }
};

class JsonLines final : public Writer {
 public:
  using Writer::Writer;

 private:
  static std::string text_of(const Cell& cell) {
    switch (cell.type) {
      case CellType::kNull:
        return "null";
      case CellType::kInteger:
        return std::to_string(cell.integer);
      case CellType::kReal:
        return std::isfinite(cell.real) ? fmt::format("{}", cell.real) : "null";
      case CellType::kText:
        return '"' + report::json_escaped(cell.text) + '"';
      case CellType::kBlob:
        return '"' + hex(cell.text) + '"';
    }
    return "null";
  }
  void start(const std::vector<std::string>& columns) override {
    keys_.clear();
    for (const std::string& column : columns)
      keys_.push_back('"' + report::json_escaped(column) + "\":");
    write("[");
  }
  void add(std::span<const Cell> cells) override {
    std::string line = rows() == 1 ? "\n{" : ",\n{";
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (i) line += ", ";
      line += keys_[i] + text_of(cells[i]);
    }
    write(line + "}");
  }
  void end() override { write("\n]\n"); }

  std::vector<std::string> keys_;
};

}  // namespace

std::unique_ptr<ResultWriter> make_result_writer(const ResultOptions& options,
                                                 std::function<void(std::string_view)> write) {
  switch (options.form) {
    case ResultForm::kTable:
      return std::make_unique<TableWriter>(options, std::move(write));
    case ResultForm::kCsv:
      return std::make_unique<CsvWriter>(options, std::move(write));
    case ResultForm::kJson:
      return std::make_unique<JsonLines>(options, std::move(write));
  }
  return nullptr;
}

}  // namespace lanescope::sql
