// State in the URL's fragment, so that a reload or a copied link shows the same: window, selection, panel. No text of the trace.
export interface LinkState {
  t0?: number;
  t1?: number;
  trace?: number;
  slice?: number;
  gap?: number;
  area?: [number, number];
  panel?: string;
  side?: string;
  search?: string;
  finding?: string;
  all?: boolean;
  rank?: string; // of the run's ranks, or "all"
  step?: number; // to begin at: its number, which all ranks share
}

const whole = /^-?\d{1,16}$/;

export function writeLink(state: LinkState): string {
  const parts: string[] = [];
  const put = (key: string, value: string | number | undefined) => {
    if (value !== undefined && value !== "") parts.push(`${key}=${encodeURIComponent(String(value))}`);
  };
  put("v", state.t0 === undefined || state.t1 === undefined ? undefined : `${Math.round(state.t0)}..${Math.round(state.t1)}`);
  put("trace", state.trace || undefined);
  put("slice", state.slice);
  put("gap", state.gap);
  put("area", state.area?.map(Math.round).join(".."));
  put("panel", state.panel);
  put("side", state.side);
  put("finding", state.finding);
  put("search", state.search);
  put("all", state.all ? 1 : undefined);
  put("rank", state.rank);
  return parts.join("&");
}

// What is not understood is left out: a link may come from anywhere.
export function readLink(fragment: string): LinkState {
  const values = new URLSearchParams(fragment.replace(/^#/, ""));
  const state: LinkState = {};
  const range = (text: string | null): [number, number] | undefined => {
    const [a, b, ...more] = (text ?? "").split("..");
    if (more.length > 0 || !whole.test(a ?? "") || !whole.test(b ?? "")) return undefined;
    return Number(a) < Number(b) ? [Number(a), Number(b)] : undefined;
  };
  const number = (text: string | null) => (text !== null && whole.test(text) && Number(text) >= 0 ? Number(text) : undefined);
  const word = (text: string | null) => (text !== null && /^[a-z][a-z0-9-]{0,60}$/.test(text) ? text : undefined);
  const view = range(values.get("v"));
  if (view !== undefined) [state.t0, state.t1] = view;
  state.trace = number(values.get("trace"));
  state.slice = number(values.get("slice"));
  state.gap = number(values.get("gap"));
  state.area = range(values.get("area"));
  state.panel = word(values.get("panel"));
  state.side = word(values.get("side"));
  state.finding = word(values.get("finding"));
  state.search = values.get("search")?.slice(0, 200);
  state.all = values.get("all") === "1";
  const rank = values.get("rank");
  if (rank !== null && /^(all|\d{1,9})$/.test(rank)) state.rank = rank;
  state.step = number(values.get("step"));
  return state;
}
