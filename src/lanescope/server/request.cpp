#include "lanescope/server/request.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <cmath>

namespace lanescope::server {
namespace {

constexpr std::size_t kMostDepth = 8;
constexpr std::size_t kMostNotes = 1000, kLongestNote = 2000;
constexpr double kMostNumber = 9007199254740992.0;  // 2^53: what a page's numbers hold exactly

Error wrong(std::string message) { return Error{Errc::kInvalidArgument, std::move(message)}; }

bool is_row(double number) {
  return number >= 0 && number <= 4294967295.0 && number == std::floor(number);
}

Result<Note> parse_note(const simdjson::dom::element& element) {
  simdjson::dom::object object;
  if (element.get_object().get(object)) return wrong("expected notes as objects");
  Note note;
  double time = 0;
  std::string_view text;
  if (object["t_ns"].get_double().get(time) || !(std::abs(time) <= kMostNumber))
    return wrong("expected a note's t_ns: nanoseconds as a number");
  if (object["text"].get_string().get(text) || text.size() > kLongestNote)
    return wrong("expected a note's text, of at most 2,000 bytes");
  note.time_ns = static_cast<std::int64_t>(time);
  note.text = text;
  double number = 0;
  if (!object["lane"].get_double().get(number) && is_row(number))
    note.lane = static_cast<std::uint32_t>(number);
  if (!object["slice"].get_double().get(number) && is_row(number))
    note.slice = static_cast<std::uint32_t>(number);
  return note;
}

}  // namespace

Result<Request> Request::parse(std::string_view body) {
  if (body.size() > kMostRequestBytes) return wrong("expected a request of at most 1 MB");
  simdjson::dom::parser parser;
  if (parser.allocate(std::max<std::size_t>(body.size(), 64), kMostDepth))
    return wrong("expected more free memory for the request");
  simdjson::dom::object object;
  const simdjson::padded_string text(body);
  simdjson::dom::element root;
  if (parser.parse(text).get(root) || root.get_object().get(object))
    return wrong("expected a JSON object as the body of the request");
  Request request;
  for (const auto& [key, value] : object) {
    double number = 0;
    bool flag = false;
    std::string_view words;
    simdjson::dom::array items;
    if (!value.get_double().get(number)) {
      request.members_[std::string(key)] = number;
    } else if (!value.get_bool().get(flag)) {
      request.members_[std::string(key)] = flag;
    } else if (!value.get_string().get(words)) {
      request.members_[std::string(key)] = std::string(words);
    } else if (key == "notes" && !value.get_array().get(items)) {
      request.notes_.clear();
      for (const simdjson::dom::element item : items) {
        if (request.notes_.size() == kMostNotes) return wrong("expected at most 1,000 notes");
        Result<Note> note = parse_note(item);
        if (!note) return note.error();
        request.notes_.push_back(std::move(*note));
      }
      request.members_[std::string(key)] = Numbers();
    } else if (!value.get_array().get(items)) {
      Numbers numbers;
      for (const simdjson::dom::element item : items) {
        if (item.get_double().get(number) || !is_row(number))
          return wrong("expected lists of whole numbers from 0 to 4294967295");
        numbers.push_back(static_cast<std::uint32_t>(number));
      }
      request.members_[std::string(key)] = std::move(numbers);
    }
  }
  return request;
}

Result<std::optional<std::int64_t>> Request::number(std::string_view key, std::int64_t smallest,
                                                    std::int64_t largest) const {
  const auto found = members_.find(key);
  if (found == members_.end()) return std::optional<std::int64_t>();
  const double* number = std::get_if<double>(&found->second);
  if (!number || !(std::abs(*number) <= kMostNumber) ||
      std::floor(*number) < static_cast<double>(smallest) ||
      std::floor(*number) > static_cast<double>(largest))
    return wrong(fmt::format("expected {} as a number from {} to {}", key, smallest, largest));
  return std::optional(static_cast<std::int64_t>(std::floor(*number)));
}

Result<std::int64_t> Request::needed(std::string_view key, std::int64_t smallest,
                                     std::int64_t largest) const {
  Result<std::optional<std::int64_t>> found = number(key, smallest, largest);
  if (!found) return found.error();
  if (!*found) return wrong(fmt::format("expected {} in the request", key));
  return **found;
}

Result<std::string> Request::text(std::string_view key, std::string_view otherwise) const {
  const auto found = members_.find(key);
  if (found == members_.end()) return std::string(otherwise);
  const std::string* text = std::get_if<std::string>(&found->second);
  if (!text) return wrong(fmt::format("expected {} as a text", key));
  return *text;
}

Result<bool> Request::flag(std::string_view key, bool otherwise) const {
  const auto found = members_.find(key);
  if (found == members_.end()) return otherwise;
  const bool* flag = std::get_if<bool>(&found->second);
  if (!flag) return wrong(fmt::format("expected {} as true or false", key));
  return *flag;
}

Result<std::vector<std::uint32_t>> Request::list(std::string_view key, std::size_t most) const {
  const auto found = members_.find(key);
  if (found == members_.end()) return Numbers();
  const Numbers* numbers = std::get_if<Numbers>(&found->second);
  if (!numbers || numbers->size() > most)
    return wrong(fmt::format("expected {} as a list of at most {} numbers", key, most));
  return *numbers;
}

Result<std::vector<Note>> Request::notes() const {
  if (!has("notes")) return wrong("expected notes in the request");
  return notes_;
}

}  // namespace lanescope::server
