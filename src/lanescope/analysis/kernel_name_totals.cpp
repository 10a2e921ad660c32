#include "lanescope/analysis/kernel_name_totals.h"

#include <unordered_map>

#include "lanescope/base/sort_rows.h"

namespace lanescope::analysis {

KernelNameTotals compute_kernel_name_totals(const Trace& trace) {
  KernelNameTotals totals;
  std::unordered_map<std::uint32_t, std::size_t> row_of;  // by name
  const SliceColumns& slices = trace.slices();
  for (std::size_t i = 0; i < slices.size(); ++i) {
    if (!is_device_work(trace.categories()[raw(slices.category[i])].kind)) continue;
    const auto [found, fresh] = row_of.try_emplace(raw(slices.name[i]), totals.rows.size());
    if (fresh) {
      KernelNameTotal row;
      row.raw = slices.name[i];
      row.name = names::parse_kernel_name(trace.text(slices.name[i]));
      totals.rows.push_back(std::move(row));
    }
    KernelNameTotal& row = totals.rows[found->second];
    ++row.count;
    row.total_ns += slices.dur_ns[i];
    totals.total_ns += slices.dur_ns[i];
    if (row.name.known()) totals.named_ns += slices.dur_ns[i];
  }
  sort_rows(totals.rows.begin(), totals.rows.end(),
            [&trace](const KernelNameTotal& a, const KernelNameTotal& b) {
              if (a.total_ns != b.total_ns) return a.total_ns > b.total_ns;
              return trace.text(a.raw) < trace.text(b.raw);
            });
  return totals;
}

}  // namespace lanescope::analysis
