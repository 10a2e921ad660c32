// gzip and zstd, any bytes: the text that comes out does not depend on the size of the reads and
// not on how many threads unpack, stays within its limits, and is read as a trace or refused with a
// message. The mutator unpacks, changes the JSON and packs it again, in one to four members, so that
// the text inside is reached.
#include <algorithm>
#include <array>

#include "check_trace.h"
#include "fuzz_support.h"
#include "json_mutator.h"
#include "lanescope/codec/byte_sink.h"
#include "lanescope/codec/compression.h"
#include "lanescope/codec/unpack.h"

namespace {

using namespace lanescope;

struct Unpacked {
  std::string text;
  bool refused = false;
  codec::UnpackReport report;
};

Unpacked unpack(std::string_view bytes, std::size_t step, const codec::UnpackOptions& options) {
  Unpacked result;
  const auto source = codec::open_unpacked(codec::memory_source(bytes), options);
  if (!source) {
    fuzz::require(!source.error().message.empty(), "an error says what was found");
    result.refused = true;
    return result;
  }
  std::array<char, 8192> buffer;
  for (;;) {
    const auto count = (*source)->read(std::span(buffer).first(step));
    if (!count) {
      fuzz::require(!count.error().message.empty(), "an error says what was found");
      result.refused = true;
      return result;
    }
    fuzz::require(*count <= step, "a read fits its buffer");
    if (*count == 0) break;
    result.text.append(buffer.data(), *count);
  }
  fuzz::require((*source)->unpacked_bytes() == result.text.size(), "all bytes are counted");
  result.report = (*source)->report();
  if (result.report.damage)
    fuzz::require(!result.report.damage_reason.empty(), "damage has a reason");
  return result;
}

// Contexts that live on, and frames that name their size: a fresh context touches megabytes, and so
// does the reader of a frame without a size. False: this build packs otherwise.
bool pack_at_once(std::string_view text, codec::Packing packing, std::string& out) {
#if LANESCOPE_HAS_ISAL
  if (packing == codec::Packing::kGzip) {
    static isal_zstream stream;
    isal_deflate_stateless_init(&stream);
    std::string packed(text.size() + text.size() / 8 + 512, '\0');
    stream.gzip_flag = IGZIP_GZIP;
    stream.end_of_stream = 1;
    stream.next_in = codec::input_bytes(text.data());
    stream.avail_in = codec::capped(text.size());
    stream.next_out = codec::bytes(packed.data());
    stream.avail_out = codec::capped(packed.size());
    if (isal_deflate_stateless(&stream) != COMP_OK) return false;
    out.append(packed, 0, packed.size() - stream.avail_out);
    return true;
  }
#endif
#if LANESCOPE_HAS_ZSTD
  if (packing == codec::Packing::kZstd) {
    static ZSTD_CCtx* const context = ZSTD_createCCtx();
    std::string packed(ZSTD_compressBound(text.size()), '\0');
    const std::size_t size =
        ZSTD_compressCCtx(context, packed.data(), packed.size(), text.data(), text.size(), 1);
    if (ZSTD_isError(size)) return false;
    out.append(packed, 0, size);
    return true;
  }
#endif
  return false;
}

void pack(std::string_view text, codec::Packing packing, int level, std::string& out) {
  if (level == 0 && pack_at_once(text, packing, out)) return;
  std::string packed;
  auto sink = codec::pack_into(codec::string_sink(packed), packing, level);
  if (sink && (*sink)->write(text) && (*sink)->finish()) out += packed;
}

std::string mutate_packed(std::string_view bytes, fuzz::Random& random) {
  codec::UnpackOptions small;
  small.free_bytes = 1 << 16;
  std::string text = unpack(bytes, 8192, small).text;
  if (!random.one_in(3)) text = fuzz::mutate_json(text, random);
  const auto packing = random.one_in(2) ? codec::Packing::kGzip : codec::Packing::kZstd;
  std::string out;
  std::string_view rest = text;
  for (int members = 1; members < 4 && random.one_in(3); ++members) {
    const std::size_t cut = random.below(rest.size() + 1);
    pack(rest.substr(0, cut), packing, random.one_in(8) ? 1 : 0, out);
    rest.remove_prefix(cut);
  }
  pack(rest, random.one_in(8) ? codec::Packing::kZstd : packing, 0, out);
  for (std::size_t flips = random.below(3); flips > 0 && !out.empty(); --flips)
    out[random.below(out.size())] = static_cast<char>(random.next());
  if (random.one_in(8)) out.resize(random.below(out.size() + 1));
  return out;
}

}  // namespace

LANESCOPE_FUZZ_MUTATOR(mutate_packed)

namespace {

void check_pieces(std::string_view bytes, const codec::UnpackOptions& options,
                  const Unpacked& whole) {
  const Unpacked pieces = unpack(bytes, 61, options);
  if (whole.refused || pieces.refused) return;
  // Whether and when a library notices damage depends on its room: zstd checks the size that a
  // frame names only when all of it fits.
  const bool damaged = whole.report.damage || pieces.report.damage;
  fuzz::require(damaged || whole.report.trailing == pieces.report.trailing,
                "the size of the reads changes no report");
  const std::size_t common =
      damaged ? std::min(whole.text.size(), pieces.text.size()) : std::string::npos;
  fuzz::require_equal(whole.text.substr(0, common), pieces.text.substr(0, common),
                      "the size of the reads changes nothing");
}

// Small parts, so that a file of a few members has several.
void check_threads(std::string_view bytes, codec::UnpackOptions options, const Unpacked& whole) {
  options.threads = 3;
  options.part_bytes = 16;
  const Unpacked shared = unpack(bytes, 8192, options);
  fuzz::require(whole.refused == shared.refused, "threads refuse what one thread refuses");
  if (whole.refused) return;
  fuzz::require(whole.report.damage.has_value() == shared.report.damage.has_value() &&
                    whole.report.trailing == shared.report.trailing,
                "the number of threads changes no report");
  // As above: how much of a damaged zstd frame comes out depends on the room for it.
  const std::size_t common =
      whole.report.damage ? std::min(whole.text.size(), shared.text.size()) : std::string::npos;
  fuzz::require_equal(whole.text.substr(0, common), shared.text.substr(0, common),
                      "the number of threads changes nothing");
}

}  // namespace

// Opening a packed file takes most of the time here: an input is unpacked in pieces or read as a
// trace, not both.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = fuzz::view(data, size);
  if (fuzz::choice_of(bytes) % 2 == 0) {
    codec::UnpackOptions options;
    options.free_bytes = 1 << 16;
    const Unpacked whole = unpack(bytes, 8192, options);
    fuzz::require(whole.text.size() <= options.free_bytes + options.max_ratio * size + 8192,
                  "the text is no longer than its limit");
    check_pieces(bytes, options, whole);
    check_threads(bytes, options, whole);
    return 0;
  }
  const auto trace = format::read_trace_bytes(bytes, fuzz::small_reads());
  if (!trace) fuzz::require(!trace.error().message.empty(), "an error says what was found");
  return 0;
}
