// Turns CUPTI's activity records into spool records: field by field, without joins, and with no
// texts except names. The spool's reader does the rest, so that the program need not wait for it.
#pragma once
#include <cupti.h>

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "lanescope/codec/activity_layout.h"

namespace lanescope::record_cupti {

// The API calls to keep, by CUPTI's number. Some CUPTI versions cannot filter; their other calls
// are left out here.
struct ApiFilter {
  bool everything = false;
  std::vector<bool> runtime, driver;
  bool wants(CUpti_ActivityKind kind, CUpti_CallbackId cbid) const {
    const std::vector<bool>& list = kind == CUPTI_ACTIVITY_KIND_RUNTIME ? runtime : driver;
    return everything || (cbid < list.size() && list[cbid]);
  }
};

// One thread at a time.
class ActivityDecoder {
 public:
  // Gets finished records in batches, like lanescope_source_write().
  using Write = std::uint32_t (*)(const void* records, std::uint32_t count);
  // Like lanescope_intern().
  using Intern = std::uint32_t (*)(const char* text, std::size_t size, const char** stored);

  // `cupti_version`: of the library that writes the records; newer fields are read only if
  // it has them.
  ActivityDecoder(std::uint32_t cupti_version, Write write, Intern intern);

  void set_filter(ApiFilter filter) { filter_ = std::move(filter); }
  void decode(const CUpti_Activity* record);
  void flush();  // writes the rest

  std::uint64_t decoded() const { return decoded_; }
  std::uint64_t unknown() const { return unknown_; }  // kinds that nobody asked for

 private:
  void decode_api(const CUpti_ActivityAPI& api);
  void decode_kernel(const CUpti_ActivityKernel9& kernel);
  void decode_memcpy(const CUpti_ActivityMemcpy5& copy);
  void decode_peer_memcpy(const CUpti_ActivityMemcpyPtoP4& copy);
  void decode_memset(const CUpti_ActivityMemset4& set);
  void decode_sync(const CUpti_Activity* record);
  void decode_event(const CUpti_Activity* record);
  void decode_overhead(const CUpti_Activity* record);
  std::uint32_t name_id(const char* name);
  template <typename T>
  void add(const T& record);

  struct KnownName {
    const char* stored;  // the recorder's copy; never freed
    std::uint32_t size, id;
  };
  const std::uint32_t version_;
  const Write write_;
  const Intern intern_;
  ApiFilter filter_;
  std::unordered_map<const char*, KnownName> names_;  // by CUPTI's address, compared by bytes
  std::vector<spool::Record> batch_;
  std::uint64_t decoded_ = 0, unknown_ = 0;
};

}  // namespace lanescope::record_cupti
