// Two traces: what each kernel costs per step in both, largest change first. A click shows it in the trace where it is.
import { none, type CompareAnswer } from "../api/types.ts";
import { formatChange, formatCount, formatTime } from "../base/format.ts";
import { cleanText } from "../base/text.ts";
import { report, say } from "../state/actions/say.ts";
import { selectSlice } from "../state/actions/selecting.ts";
import { useStore } from "../state/context.ts";
import type { Store } from "../state/store.ts";
import { Text } from "./common.tsx";
import { VirtualTable } from "./virtual_table.tsx";

interface Group { name?: string; readable_name?: string; op?: string }
export interface CompareRow { name: string; full: string; a_count: number; b_count: number; a_ns: number; b_ns: number; delta_ns: number; state: "" | "new" | "gone" }

// Kernels that differ between the traces and do the same work are one row: "mul, gelu → fused gelu+mul".
function joinNames(a: Group[], b: Group[]): string {
  const names = (groups: Group[]) => [...new Set(groups.map((group) => group.readable_name ?? group.name ?? ""))];
  const [inA, inB] = [names(a), names(b)];
  const same = inA.length === inB.length && inA.every((name, at) => name === inB[at]);
  return [inA, same ? [] : inB].filter((each) => each.length > 0).map((each) => each.join(", ")).join(" → ");
}

// The rows of `lanescope diff --json`, as far as they have the members that the table needs.
export function compareRows(answer: CompareAnswer): CompareRow[] {
  const kernels = Array.isArray(answer.kernels) ? answer.kernels : [];
  const number = (value: unknown) => (typeof value === "number" ? value : 0);
  return kernels.map((kernel: Record<string, unknown>) => {
    const groups = (side: unknown) => (Array.isArray(side) ? (side as Group[]) : []);
    const [inA, inB] = [groups(kernel.a), groups(kernel.b)];
    const [a, b] = [number(kernel.a_count), number(kernel.b_count)];
    return {
      name: joinNames(inA, inB), full: (inB[0] ?? inA[0])?.name ?? "", a_count: a, b_count: b, a_ns: number(kernel.a_ns), b_ns: number(kernel.b_ns),
      delta_ns: number(kernel.delta_ns), state: a === 0 ? "new" as const : b === 0 ? "gone" as const : "" as const,
    };
  }).sort((x, y) => Math.abs(y.delta_ns) - Math.abs(x.delta_ns));
}

export const compareHeadline = (answer: CompareAnswer) => answer.brief?.verdict ?? (typeof answer.headline === "string" ? answer.headline : "");

async function show(store: Store, row: CompareRow): Promise<void> {
  const trace = row.b_count > 0 ? 1 : 0;
  try {
    const word = row.full.split(/\s+/).sort((a, b) => b.length - a.length)[0] ?? row.full;
    const answer = await store.engine.search(trace, word.slice(0, 200), 1);
    const hit = answer.hits[0];
    if (hit === undefined || hit.slice === none) say(store, "this kernel was not found");
    else await selectSlice(store, trace, hit.slice, { move: true });
  } catch (reason) {
    report(store, reason);
  }
}

export function ComparePanel() {
  const store = useStore();
  const answer = store.comparison.value;
  if (answer === null) return <p class="faint pad">…</p>;
  const rows = compareRows(answer);
  return (
    <div class="panel">
      <p class="pad"><b><Text of={compareHeadline(answer)} most={1000} /></b></p>
      <VirtualTable
        label="kernels of both traces"
        total={rows.length}
        row={(index) => rows[index]}
        onOpen={(row) => void show(store, row)}
        columns={[
          { key: "name", title: "Kernel", grow: 5, cell: (row) => <bdi title={cleanText(`${row.name}: ${row.full}`, 1000)}>{cleanText(row.name)}</bdi> },
          { key: "state", title: "Only in", grow: 0.7, cell: (row) => ({ new: "B", gone: "A", "": "" })[row.state] },
          { key: "delta", title: "B − A per step", numeric: true, grow: 1.3, cell: (row) => formatChange(row.delta_ns) },
          { key: "a", title: "A per step", numeric: true, cell: (row) => formatTime(row.a_ns) },
          { key: "b", title: "B per step", numeric: true, cell: (row) => formatTime(row.b_ns) },
          { key: "count", title: "Count A → B", numeric: true, cell: (row) => `${formatCount(row.a_count)} → ${formatCount(row.b_count)}` },
        ]}
      />
    </div>
  );
}
