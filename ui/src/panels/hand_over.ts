// What leaves the page: one HTML file, and a range for Perfetto's page. Nothing is uploaded: the browser hands the bytes over.
import { report, say } from "../state/actions/say.ts";
import type { Store } from "../state/store.ts";

const perfettoOrigin = "https://ui.perfetto.dev";

export function download(blob: Blob, name: string): void {
  const url = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

export async function saveRange(store: Store, trace: number, t0: number, t1: number): Promise<void> {
  store.busy.value = "making the file";
  try {
    const blob = await store.engine.save(trace, Math.floor(t0), Math.ceil(t1));
    const stem = store.view(trace).meta.title.replace(/[^A-Za-z0-9._-]+/g, "_").replace(/\.json(\.gz)?$/, "").slice(0, 80) || "trace";
    download(blob, `${stem}.html`);
    say(store, "the file was saved");
  } catch (reason) {
    report(store, reason);
  }
  store.busy.value = null;
}

// The window is opened inside of the click, before anything is awaited, else the browser blocks it.
export async function openInPerfetto(store: Store, trace: number, t0: number, t1: number): Promise<void> {
  const other = window.open(perfettoOrigin);
  if (other === null) return report(store, "The browser did not open a window. Allow pop-ups for this page, or use `lanescope view --perfetto`.");
  store.busy.value = "handing the range to Perfetto";
  try {
    const buffer = await store.engine.perfetto(trace, Math.floor(t0), Math.ceil(t1));
    await answerTo(other);
    other.postMessage({ perfetto: { buffer, title: store.view(trace).meta.title.slice(0, 100), localOnly: true } }, perfettoOrigin);
    say(store, "Perfetto has the range");
  } catch (reason) {
    report(store, reason);
  }
  store.busy.value = null;
}

function answerTo(other: Window): Promise<void> {
  return new Promise((resolve, reject) => {
    let tries = 0;
    const timer = setInterval(() => {
      tries += 1;
      if (tries > 300) end(() => reject(new Error("Perfetto's page did not answer within 60 s. Is this machine offline? `lanescope view --perfetto` serves the file instead.")));
      else other.postMessage("PING", perfettoOrigin);
    }, 200);
    const hear = (event: MessageEvent) => {
      if (event.origin === perfettoOrigin && event.data === "PONG") end(resolve);
    };
    const end = (then: () => void) => {
      clearInterval(timer);
      removeEventListener("message", hear);
      then();
    };
    addEventListener("message", hear);
  });
}
