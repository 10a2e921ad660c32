// Which tensors an operator takes: a record for each, before the operator's range. Python sorts
// memory into parameters, gradients, activations and so on with these records.
// docs/decisions/tensor_identities.md.
//
// A tensor is its TensorImpl and its storage. Addresses are used again. For a storage the reader
// resolves that later, from the recorded allocations and frees. A TensorImpl's address must not be
// used again while the window is open, so we keep a weak reference to it, as torch.profiler does.
// That keeps the memory of the TensorImpl, but not its storage. There is room for kMostTensors;
// tensors beyond it are recorded without identity (kLost).
//
// Part of torch_observer.cpp (compiled with it, against the user's torch). Nothing throws.
#pragma once
#include <ATen/record_function.h>
#include <c10/util/intrusive_ptr.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <thread>
#include <utility>

#include "lanescope/record/activity_source.h"
#include "lanescope/record/thread_writer.h"
#include "lanescope/record_torch/op_inputs.h"

namespace lanescope::record_torch {

// The options that torch.profiler, too, asks for before it sorts memory.
inline constexpr std::uint32_t kTensorOptions =
    LANESCOPE_RECORD_MEMORY | LANESCOPE_RECORD_SHAPES | LANESCOPE_RECORD_STACK;
inline bool wants_tensors(std::uint32_t options) {
  return (options & kTensorOptions) == kTensorOptions;
}

// The weak references: a hash table that only grows, until the window closes. Many threads hold();
// one at a time, the recorder's, opens and closes. No locks.
class HeldTensors {
 public:
  static constexpr std::size_t kMostTensors = 1 << 18;

  void open(bool wanted) {
    if (!wanted) return;
    if (!slots_) slots_ = static_cast<Slot*>(std::calloc(kSlots, sizeof(Slot)));
    is_open_.store(slots_ != nullptr, std::memory_order_seq_cst);
  }
  void close() {
    if (!is_open_.exchange(false, std::memory_order_seq_cst)) return;
    while (users_.load(std::memory_order_seq_cst) != 0) std::this_thread::yield();
    for (std::size_t at = 0; at < kSlots; ++at)
      if (c10::TensorImpl* held = slots_[at].load(std::memory_order_relaxed))
        WeakTensor::reclaim(held);
    count_.store(0, std::memory_order_relaxed);
    std::free(std::exchange(slots_, nullptr));
  }

  // While one of these lives, close() waits.
  class Use {
   public:
    explicit Use(HeldTensors& all) : all_(all) {
      all_.users_.fetch_add(1, std::memory_order_seq_cst);
      ok_ = all_.is_open_.load(std::memory_order_seq_cst);
    }
    ~Use() { all_.users_.fetch_sub(1, std::memory_order_release); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    bool ok() const { return ok_; }

   private:
    HeldTensors& all_;
    bool ok_;
  };

  // False: no room. Only while a Use says ok.
  bool hold(const at::Tensor& tensor) {
    c10::TensorImpl* const wanted = tensor.unsafeGetTensorImpl();
    const auto address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(wanted));
    std::size_t place = (address * 0x9e3779b97f4a7c15u) >> (64 - kSlotBits);
    for (;; place = (place + 1) & (kSlots - 1)) {
      c10::TensorImpl* held = slots_[place].load(std::memory_order_relaxed);
      if (held == wanted) return true;
      if (held) continue;
      if (count_.fetch_add(1, std::memory_order_relaxed) >= kMostTensors) {
        count_.fetch_sub(1, std::memory_order_relaxed);
        return false;
      }
      WeakTensor weak(tensor.getIntrusivePtr());
      if (slots_[place].compare_exchange_strong(held, wanted, std::memory_order_relaxed)) {
        weak.release();
        return true;
      }
      count_.fetch_sub(1, std::memory_order_relaxed);
      if (held == wanted) return true;
    }
  }

 private:
  using WeakTensor = c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
  using Slot = std::atomic<c10::TensorImpl*>;  // all bits 0 is null
  static constexpr unsigned kSlotBits = 19;    // at most half of them are used
  static constexpr std::size_t kSlots = std::size_t{1} << kSlotBits;

  Slot* slots_ = nullptr;
  std::atomic<std::size_t> count_{0};
  std::atomic<std::uint32_t> users_{0};
  std::atomic<bool> is_open_{false};
};

inline HeldTensors& held_tensors() {
  static constinit HeldTensors all;
  return all;
}

// Null for tensors without storage, and for those whose storage has no data (meta tensors).
inline std::uint64_t storage_address(const at::Tensor& tensor) {
  try {
    if (!tensor.has_storage()) return 0;
    return reinterpret_cast<std::uintptr_t>(tensor.storage().data());
  } catch (...) {
    return 0;
  }
}

// The largest product of a size and its stride, as torch.profiler measures a tensor.
inline std::int64_t spanned_bytes(const at::Tensor& tensor) {
  if (tensor.layout() != at::kStrided) return -1;
  std::int64_t elements = tensor.dim() == 0 ? 1 : 0;
  for (std::int64_t at = 0; at < tensor.dim(); ++at)
    elements = std::max(elements, tensor.sizes()[at] * tensor.strides()[at]);
  return elements * static_cast<std::int64_t>(tensor.dtype().itemsize());
}

// `identity`: the caller has set the fields that the tensor itself does not know.
inline void record_identity(const at::Tensor& tensor, spool::TensorRecord identity) {
  try {
    if (held_tensors().hold(tensor)) {
      identity.bytes = spanned_bytes(tensor);
      identity.address = storage_address(tensor);
      identity.implementation = reinterpret_cast<std::uintptr_t>(tensor.unsafeGetTensorImpl());
      identity.device_type = static_cast<std::uint8_t>(tensor.device().type());
      identity.device_index = tensor.device().index();
    } else {
      identity.role = spool::TensorRole::kLost;
    }
  } catch (...) {  // a tensor subclass that cannot give its sizes
    identity.role = spool::TensorRole::kLost;
  }
  record::record_tensor(identity);
}

// Before the operator's range.
[[gnu::noinline]] inline void note_inputs(const at::RecordFunction& fn, std::uint32_t name) {
  const HeldTensors::Use use(held_tensors());
  if (!use.ok()) return;
  spool::TensorRecord identity;
  identity.operator_name = name;
  identity.role = spool::TensorRole::kInput;
  for (const c10::IValue& value : fn.inputs()) {
    if (identity.input == spool::kMostInput) return;
    if (value.isTensor()) {
      identity.item = 0;
      if (has_plain_sizes(value.toTensor())) record_identity(value.toTensor(), identity);
    } else if (value.isTensorList()) {
      const auto list = value.toListRef();
      const auto is_plain = [](const c10::IValue& item) {
        return has_plain_sizes(item.toTensor());
      };
      identity.item = 0;
      if (std::all_of(list.begin(), list.end(), is_plain)) {
        for (const c10::IValue& item : list) {
          ++identity.item;
          record_identity(item.toTensor(), identity);
        }
      }
    }
    ++identity.input;
  }
}

inline void note_tensor(const void* implementation, spool::TensorRole role) {
  const HeldTensors::Use use(held_tensors());
  if (!use.ok()) return;
  auto* const impl = static_cast<c10::TensorImpl*>(const_cast<void*>(implementation));
  const at::Tensor tensor(
      c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>::reclaim_copy(impl));
  if (!has_plain_sizes(tensor)) return;
  spool::TensorRecord identity;
  identity.role = role;
  record_identity(tensor, identity);
}

}  // namespace lanescope::record_torch
