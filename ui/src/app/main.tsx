// Starts the page: finds out where the answers come from, asks the first questions, draws.
import { render } from "preact";
import { EngineError, type Engine } from "../api/engine.ts";
import { HttpEngine } from "../api/http_engine.ts";
import { columnsOf, unpackSaved } from "../api/saved_data.ts";
import { SavedEngine } from "../api/saved_engine.ts";
import { goToStep } from "../state/actions/moving.ts";
import { report } from "../state/actions/say.ts";
import { renewDetails } from "../state/actions/selecting.ts";
import { StoreProvider } from "../state/context.ts";
import { followGrowth } from "../state/growth.ts";
import { Store } from "../state/store.ts";
import { readLink } from "../state/url_state.ts";
import { fit } from "../state/window.ts";
import { App } from "./app.tsx";
import { listenToKeys } from "./keyboard.ts";
import { followLink, keepLink } from "./link_sync.ts";

const tokenKey = "lanescope-token";

// The token comes in the fragment, which no server sees. It leaves the address bar at once and stays for a reload of this tab.
function takeToken(): { token: string; rest: string } {
  const values = new URLSearchParams(location.hash.replace(/^#/, ""));
  const given = values.get("t");
  values.delete("t");
  const rest = values.toString();
  if (given !== null) {
    sessionStorage.setItem(tokenKey, given);
    history.replaceState(null, "", rest === "" ? location.pathname : `#${rest}`);
  }
  return { token: given ?? sessionStorage.getItem(tokenKey) ?? "", rest };
}

async function findEngine(): Promise<{ engine: Engine; fragment: string; rank?: string }> {
  const saved = document.getElementById("lanescope-saved");
  if (saved !== null) {
    const data = await unpackSaved(saved.textContent ?? "");
    return { engine: new SavedEngine(data, columnsOf(data)), fragment: location.hash };
  }
  const { token, rest } = takeToken();
  const { rank } = readLink(rest);
  return { engine: new HttpEngine(token, rank ?? null), fragment: rest, rank };
}

function watchTheme(store: Store): void {
  const query = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => { store.dark.value = query.matches; };
  apply();
  query.addEventListener("change", apply);
}

// While this question is open, the server knows that a page is.
async function stayAlive(store: Store): Promise<void> {
  let generation = store.meta.generation;
  for (;;) {
    try {
      if (await store.engine.alive(generation) !== generation) generation = await followGrowth(store);
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 5_000));
    }
  }
}

async function start(root: HTMLElement): Promise<void> {
  const { engine, fragment, rank } = await findEngine();
  const meta = await engine.meta();
  const reduced = matchMedia("(prefers-reduced-motion: reduce)");
  const store = new Store(engine.of(meta.generation), meta, () => reduced.matches, rank);
  watchTheme(store);
  // Next to a panel, a small window has no room for lanes. Narrower ones have it below.
  if (innerWidth < 1100 && innerWidth > 760) store.sideOpen.value = false;
  // Answers are those of one rank.
  if (meta.ranks?.shown === "all") store.sideOpen.value = false;
  document.title = `${store.main.meta.title} – lanescope`;

  const trace = store.main.meta;
  store.viewport.jump(fit(0, trace.span_ns, store.viewport.traceSpan, 0.01));
  const { typical } = store.main.steps;
  if (engine.range !== null) store.viewport.jump(fit(engine.range.t0, engine.range.t1, store.viewport.traceSpan, 0.01));
  else if (typical !== undefined && store.main.steps.count > 1) goToStep(store, typical);
  else if (trace.first_view !== undefined) store.viewport.jump(fit(trace.first_view.t0, trace.first_view.t1, store.viewport.traceSpan));
  store.viewport.jump(store.viewport.target);
  root.replaceChildren();
  render(<StoreProvider value={store}><App /></StoreProvider>, root);
  listenToKeys(store);

  engine.notes().then((notes) => { store.notes.value = notes; }, () => undefined);
  void stayAlive(store);
  // The rules take seconds for a trace of millions of events; the lanes are there before, and what the link says of them.
  const explained = store.meta.ranks?.shown === "all" ? Promise.resolve() : explain(store);
  if (store.meta.ranks?.together === true) void explained.then(() => askJob(store));
  await followLink(store, fragment, explained);
  keepLink(store);
}

// What holds all ranks up. It reads every rank's trace, so it comes after what this one says.
async function askJob(store: Store): Promise<void> {
  try {
    store.job.value = await store.engine.job();
  } catch (reason) {
    report(store, reason);
  }
}

async function explain(store: Store): Promise<void> {
  const askAll = async () => {
    await Promise.all(store.views.map(async (view) => { view.explanation.value = await store.engine.explain(view.index); }));
    await renewDetails(store);
    if (store.views.length > 1) store.comparison.value = await store.engine.compare();
  };
  try {
    await askAll();
  } catch (reason) {
    report(store, reason); // a trace that has grown is explained again by growth.ts
  }
}

const root = document.getElementById("root");
if (root !== null) {
  start(root).catch((reason) => {
    const text = document.createElement("p");
    text.className = "start-problem";
    text.setAttribute("role", "alert");
    const unknown = reason instanceof EngineError && (reason.status === 401 || reason.status === 403);
    text.textContent = unknown
      ? "This page lacks the token of the lanescope that runs now. Open the address that `lanescope view` printed, with everything after the #."
      : reason instanceof Error ? reason.message : String(reason);
    root.replaceChildren(text);
  });
}
