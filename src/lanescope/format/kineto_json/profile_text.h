// The JSON of V8's CPU profiles: nodes, samples and times, as Chrome's traces and .cpuprofile files have them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lanescope/base/ids.h"
#include "lanescope/codec/json_index.h"
#include "lanescope/model/trace_builder.h"

namespace lanescope::format {

struct JsonWalk;

// One frame below its parent. Node ids are the file's own.
struct ProfileNode {
  static constexpr std::uint32_t kNoParent = 0xffffffff;

  std::uint32_t id = 0, parent = kNoParent;
  StringId function = kNone<StringId>, url = kNone<StringId>, code_type = kNone<StringId>;
  std::int32_t line = -1, column = -1;  // from 0; -1: none
};

// What some texts of one profile say, in the order in which they were added.
struct ProfileParts {
  struct Link {  // from a node's list of children
    std::uint32_t parent, child;
  };
  // Samples of one text. Texts may come in any order.
  struct Chunk {
    std::int64_t time_ns = 0;  // of the event that had it
    std::size_t begin = 0, end = 0;
  };

  std::vector<ProfileNode> nodes;
  std::vector<Link> links;
  std::vector<std::uint32_t> samples;   // ids of nodes
  std::vector<std::int64_t> deltas_ns;  // since the sample before; as many as samples
  std::vector<Chunk> chunks;
  std::optional<std::int64_t> start_ns, end_ns;
  std::uint64_t text_bytes = 0;
  std::uint64_t lost = 0;  // nodes, samples and fields that were not understood
};

// One thread; borrows the builder, which gets the texts of frames.
class ProfileTextReader {
 public:
  explicit ProfileTextReader(TraceBuilder& builder) : builder_(builder) {}

  // `json`: an object, strict JSON, with these entries in any order, or with `cpuProfile` that has some of them:
  //   nodes       list of {id, parent, children, callFrame: {functionName, url, lineNumber, columnNumber, codeType}}
  //   samples     list of ids of nodes
  //   timeDeltas  list of microseconds
  //   startTime, endTime   microseconds
  // Others are left out. `time_ns`: of the event. Cost: one pass; memory in proportion to the text.
  void read(std::string_view json, std::int64_t time_ns, ProfileParts& parts);

 private:
  void read_object(JsonWalk& walk, ProfileParts& parts, bool is_inner);
  void read_nodes(JsonWalk& walk, ProfileParts& parts);
  bool read_node(JsonWalk& walk, ProfileParts& parts);
  bool read_frame(JsonWalk& walk, ProfileNode& node);
  bool read_children(JsonWalk& walk, std::vector<std::uint32_t>& children);
  StringId read_text(JsonWalk& walk);

  TraceBuilder& builder_;
  codec::JsonIndex index_;
  std::string text_;     // with padding
  std::string scratch_;  // a text without escapes
};

}  // namespace lanescope::format
