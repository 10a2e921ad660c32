// Names by id. Asked for in pages when something is drawn that has a name not known yet.
import { signal } from "@preact/signals";
import type { Engine } from "../api/engine.ts";
import { none, type Name } from "../api/types.ts";
import { cleanText } from "../base/text.ts";

const mostPerRequest = 2000;

export class Names {
  // Counts the answers: whoever draws names reads it, and so draws again.
  readonly version = signal(0);
  private known = new Map<number, string>();
  private growth = 0; // counts replace(): an answer from before is not kept
  private readonly missing = new Set<number>();
  private asking = false;

  constructor(private readonly engine: () => Engine, private readonly trace: number) {}

  short(id: number): string {
    const name = this.known.get(id);
    if (name !== undefined) return name;
    if (id !== none) {
      this.missing.add(id);
      if (!this.asking) void this.ask();
    }
    return "";
  }

  // The trace has grown and numbers its names anew.
  replace(names: readonly Name[]): void {
    this.growth += 1;
    this.known = new Map();
    this.missing.clear();
    this.keep(names);
  }

  private keep(names: readonly Name[]): void {
    for (const name of names) this.known.set(name.id, cleanText(name.short || name.full));
    this.version.value += 1;
  }

  private async ask(): Promise<void> {
    this.asking = true;
    await new Promise((resolve) => setTimeout(resolve, 0)); // gather what one drawing misses
    while (this.missing.size > 0) {
      const ids = [...this.missing].slice(0, mostPerRequest);
      for (const id of ids) this.missing.delete(id);
      try {
        const growth = this.growth;
        const names: Name[] = await this.engine().names(this.trace, ids);
        if (growth === this.growth) this.keep(names);
      } catch {
        break; // The next drawing asks again.
      }
    }
    this.asking = false;
  }
}
