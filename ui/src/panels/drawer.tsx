// Tables and views below the timeline, one at a time.
import { useEffect, useRef } from "preact/hooks";
import type { Drawer as DrawerName } from "../state/store.ts";
import { openDrawer } from "../state/actions/panels.ts";
import { useStore } from "../state/context.ts";
import { AreaPanel } from "./area.tsx";
import { ComparePanel } from "./compare.tsx";
import { FlamePanel } from "./flame.tsx";
import { GapsPanel } from "./gaps.tsx";
import { MemoryPanel } from "./memory.tsx";
import { NotesPanel } from "./notes.tsx";
import { RanksPanel } from "./ranks.tsx";
import { SearchPanel } from "./search_panel.tsx";
import { NameTable } from "./tables.tsx";

const titles: [Exclude<DrawerName, "none">, string][] = [
  ["kernels", "Kernels"], ["operators", "Operators"], ["gaps", "GPU gaps"], ["area", "Area"], ["flame", "Flame graph"], ["memory", "Memory"],
  ["search", "Search hits"], ["notes", "Notes"], ["compare", "Compare"], ["ranks", "Ranks"],
];

export function Drawer() {
  const store = useStore();
  const open = store.drawer.value;
  const section = useRef<HTMLElement>(null);
  // On a narrow screen the page is longer than the screen, and the table would open below it.
  useEffect(() => {
    if (open !== "none" && document.documentElement.scrollHeight > innerHeight) section.current?.scrollIntoView({ block: "end" });
  }, [open]);
  const hasGpu = store.main.meta.lanes.some((lane) => lane.kind === "gpu");
  const shown = titles.filter(([name]) => (name !== "compare" || store.views.length > 1) && (name !== "ranks" || store.meta.ranks !== undefined) && (hasGpu || (name !== "kernels" && name !== "gaps")));
  const onKeyDown = (event: KeyboardEvent) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (by === undefined) return;
    const at = shown.findIndex(([name]) => name === open);
    const next = shown[(at + by + shown.length) % shown.length][0];
    openDrawer(store, next);
    document.getElementById(`tab-${next}`)?.focus();
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <section ref={section} class={`drawer ${open === "none" ? "" : "drawer-open"}`} aria-label="Tables">
      <div class="tabs" role="tablist" aria-label="Tables" onKeyDown={onKeyDown}>
        {shown.map(([name, title]) => (
          <button key={name} id={`tab-${name}`} type="button" role="tab" aria-selected={open === name} aria-controls={open === name ? "drawer-panel" : undefined}
            tabIndex={open === name || (open === "none" && name === shown[0][0]) ? 0 : -1} onClick={() => openDrawer(store, open === name ? "none" : name)}>{title}</button>
        ))}
      </div>
      {open !== "none" && (
        <div id="drawer-panel" role="tabpanel" aria-labelledby={`tab-${open}`} class="drawer-panel">
          {open === "kernels" && <NameTable key="kernels" table="kernels" />}
          {open === "operators" && <NameTable key="operators" table="operators" />}
          {open === "gaps" && <GapsPanel />}
          {open === "area" && <AreaPanel />}
          {open === "flame" && <FlamePanel />}
          {open === "memory" && <MemoryPanel />}
          {open === "search" && <SearchPanel />}
          {open === "notes" && <NotesPanel />}
          {open === "compare" && <ComparePanel />}
          {open === "ranks" && <RanksPanel />}
        </div>
      )}
    </section>
  );
}
