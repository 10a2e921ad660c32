// Writes CUPTI's activity buffers to a file, as CUPTI filled them, for tests on machines
// without a GPU.
//
//   nvcc -O2 -std=c++17 -shared -Xcompiler -fPIC -I$CUDA/extras/CUPTI/include
//     bench/gpu/cupti_buffers.cpp -o cupti_buffers.so -L$CUDA/lib64 -lcupti
//   CUPTI_BUFFERS=buffers.bin CUDA_INJECTION64_PATH=./cupti_buffers.so ./cuda_program 4
//
// All kinds that lanescope may ask for are on. Only pointers are replaced: a kernel's name by
// its number in the list of names (from 1), what CUPTI gives away with an overhead by 0. The
// file, in the machine's byte order: "CUPTIBUF", u32 version of CUPTI, u32 number of names, per
// name u32 length and its bytes; u32 number of buffers, per buffer u32 bytes, u32 number of
// records, u32 offset of each, and the bytes. At the end of the program a line on stderr counts
// the records by kind.
#include <cupti.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace {

struct Filled {
  std::vector<std::uint8_t> bytes;
  std::vector<std::uint32_t> offsets;
};

std::mutex mutex;  // guards all below
std::vector<Filled> buffers;
std::vector<std::string> names;
std::map<int, int> kinds;

std::uint64_t number_of(const char* name) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return i + 1;
  names.emplace_back(name);
  return names.size();
}

void CUPTIAPI request(std::uint8_t** buffer, std::size_t* size, std::size_t* records) {
  *size = 64 << 10;
  *records = 0;
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(4096, *size));
}

void CUPTIAPI complete(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t,
                       std::size_t valid) {
  const std::lock_guard<std::mutex> lock(mutex);
  Filled filled;
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    filled.offsets.push_back(
        static_cast<std::uint32_t>(reinterpret_cast<std::uint8_t*>(record) - buffer));
    ++kinds[record->kind];
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      auto* kernel = reinterpret_cast<CUpti_ActivityKernel9*>(record);
      kernel->name = reinterpret_cast<const char*>(kernel->name ? number_of(kernel->name) : 0);
    }
    if (record->kind == CUPTI_ACTIVITY_KIND_OVERHEAD)
      reinterpret_cast<CUpti_ActivityOverhead3*>(record)->overheadData = nullptr;
  }
  filled.bytes.assign(buffer, buffer + valid);
  if (!filled.offsets.empty()) buffers.push_back(std::move(filled));
  std::free(buffer);
}

void put(std::FILE* file, std::size_t value) {
  const auto word = static_cast<std::uint32_t>(value);
  std::fwrite(&word, sizeof word, 1, file);
}

void write_file() {
  cuptiActivityFlushAll(0);
  const std::lock_guard<std::mutex> lock(mutex);
  const char* path = std::getenv("CUPTI_BUFFERS");
  std::FILE* file = std::fopen(path ? path : "cupti_buffers.bin", "wb");
  if (!file) return std::perror("cupti_buffers: cannot write the file");
  std::uint32_t version = 0;
  cuptiGetVersion(&version);
  std::fwrite("CUPTIBUF", 8, 1, file);
  put(file, version);
  put(file, names.size());
  for (const std::string& name : names) {
    put(file, name.size());
    std::fwrite(name.data(), 1, name.size(), file);
  }
  put(file, buffers.size());
  for (const Filled& filled : buffers) {
    put(file, filled.bytes.size());
    put(file, filled.offsets.size());
    for (const std::uint32_t offset : filled.offsets) put(file, offset);
    std::fwrite(filled.bytes.data(), 1, filled.bytes.size(), file);
  }
  std::fclose(file);
  std::fprintf(stderr, "cupti_buffers: CUPTI %u, %zu buffers, records by kind:", version,
               buffers.size());
  for (const auto& [kind, count] : kinds) std::fprintf(stderr, " %d: %d", kind, count);
  std::fprintf(stderr, "\n");
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  cuptiActivityRegisterCallbacks(request, complete);
  for (const CUpti_ActivityKind kind :
       {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
        CUPTI_ACTIVITY_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_OVERHEAD,
        CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER,
        CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, CUPTI_ACTIVITY_KIND_CUDA_EVENT})
    if (cuptiActivityEnable(kind) != CUPTI_SUCCESS)
      std::fprintf(stderr, "cupti_buffers: kind %d is not on\n", kind);
  std::atexit(write_file);
  return 1;
}
