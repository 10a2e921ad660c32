#include "lanescope/format/perfetto/own_arguments.h"

#include "lanescope/format/perfetto/annotations.h"
#include "lanescope/format/perfetto/fields.h"

namespace lanescope::format {

void OwnArguments::add_those_before_the_next(const SequenceState& state, TraceBuilder& builder) {
  while (is_there_ && place_ <= added_) add_one(state, builder);
  ++added_;
}

void OwnArguments::add_all_left(const SequenceState& state, TraceBuilder& builder) {
  while (is_there_) add_one(state, builder);
}

void OwnArguments::find_next() {
  is_there_ = false;
  while (!is_there_ && field_.next()) {
    if (field_.number() != pftrace::kOwnArgument) continue;
    is_there_ = true;
    place_ = 0;
    annotation_ = {};
    for (codec::WireReader part(field_.bytes()); part.next();) {
      if (part.number() == pftrace::kOwnPlace) place_ = part.integer();
      if (part.number() == pftrace::kOwnAnnotation) annotation_ = part.bytes();
    }
  }
}

void OwnArguments::add_one(const SequenceState& state, TraceBuilder& builder) {
  add_annotation(annotation_, state, builder);
  ++added_;
  find_next();
}

}  // namespace lanescope::format
