// The keyboard contract. Letters go by their place on the keyboard (code), so that W A S D is a cross on every layout; symbols by
// what is typed (key). Perfetto's meanings where it has them.

export type Action =
  | "zoom-in" | "zoom-out" | "pan-left" | "pan-right" | "fit" | "mark" | "keep-mark" | "area" | "next" | "previous" | "follow-back"
  | "follow-forward" | "search" | "lanes" | "commands" | "drawer" | "help" | "clear" | "whole" | "undo" | "explain" | "lane-up"
  | "lane-down" | "next-step" | "previous-step" | "measure" | "open" | "tour" | "child" | "parent" | "pin" | "fold";

export interface KeyPress { key: string; code: string; ctrl: boolean; shift: boolean; alt: boolean; inText: boolean; singleKeys: boolean }

export const byCode: Record<string, Action> = {
  KeyW: "zoom-in", KeyS: "zoom-out", KeyA: "pan-left", KeyD: "pan-right", KeyF: "fit", KeyM: "mark", KeyR: "area", KeyE: "explain",
  KeyQ: "drawer", KeyT: "tour", KeyX: "measure",
};

export const byKey: Record<string, Action> = {
  ".": "next", ",": "previous", "[": "follow-back", "]": "follow-forward", "/": "search", "?": "help", "0": "whole", "+": "zoom-in",
  "=": "zoom-in", "-": "zoom-out",
};

// Keys that are no letters work also when single-key shortcuts are off.
export const always: Record<string, Action> = {
  Escape: "clear", ArrowLeft: "pan-left", ArrowRight: "pan-right", ArrowUp: "lane-up", ArrowDown: "lane-down", Enter: "open", Backspace: "undo",
  PageUp: "zoom-in", PageDown: "zoom-out", Home: "whole", End: "fit",
};

// What a key means, or null: then the browser has it. `inText`: the focus is in a field or on something that uses the key.
export function actionOf(press: KeyPress): Action | null {
  if (press.alt) return null;
  if (press.ctrl) {
    if (press.code === "KeyP") return press.shift ? "commands" : "lanes";
    // The browser finds no text in a canvas. In the search field it is the browser's own again.
    return press.code === "KeyF" && !press.shift && !press.inText ? "search" : null;
  }
  if (press.inText) return press.key === "Escape" ? "clear" : null;
  if (press.shift && press.key === "ArrowLeft") return "previous-step";
  if (press.shift && press.key === "ArrowRight") return "next-step";
  if (press.shift && press.key === "ArrowUp") return "parent";
  if (press.shift && press.key === "ArrowDown") return "child";
  const fixed = always[press.key];
  if (fixed !== undefined) return fixed;
  if (!press.singleKeys) return null;
  if (press.shift && press.code === "KeyM") return "keep-mark";
  if (press.shift && press.code === "KeyT") return "pin";
  if (press.shift && press.code === "KeyF") return "fold";
  const symbol = byKey[press.key];
  if (symbol !== undefined) return symbol;
  return press.shift ? null : byCode[press.code] ?? null;
}

export const keyHelp: readonly { keys: string[]; text: string }[] = [
  { keys: ["W", "S"], text: "zoom in, out" },
  { keys: ["A", "D"], text: "move left, right" },
  { keys: ["←", "→"], text: "move left, right" },
  { keys: ["PageUp", "PageDown", "+", "=", "−"], text: "zoom in, out" },
  { keys: ["↑", "↓"], text: "the lane above, below" },
  { keys: ["Shift ↑", "Shift ↓"], text: "what holds this event, what it holds" },
  { keys: [".", ","], text: "next, previous event on the lane" },
  { keys: ["[", "]"], text: "from a kernel back to its launch, from a launch to its kernel" },
  { keys: ["Enter"], text: "select the event in the middle of the lane" },
  { keys: ["F", "End"], text: "bring the selection to the middle; again: fill the window with it" },
  { keys: ["0", "Home"], text: "whole trace" },
  { keys: ["Backspace"], text: "back to the window before" },
  { keys: ["Shift ←", "Shift →"], text: "previous, next step" },
  { keys: ["R"], text: "make an area of the selection: sums of all lanes in that time" },
  { keys: ["X"], text: "measure from the selection: then choose the other end with . and ," },
  { keys: ["M", "Shift M"], text: "mark the selection until the next mark; keep the mark" },
  { keys: ["/", "Ctrl F"], text: "search the whole trace; Enter, Shift Enter: next, previous hit" },
  { keys: ["Ctrl C"], text: "copy the name of the selected event" },
  { keys: ["Ctrl P"], text: "find a lane" },
  { keys: ["Shift T", "Shift F"], text: "pin, fold the lane" },
  { keys: ["E"], text: "answers: what costs time, and why" },
  { keys: ["T"], text: "guided tour of this trace" },
  { keys: ["Q"], text: "tables below the timeline" },
  { keys: ["Ctrl Shift P"], text: "all commands" },
  { keys: ["Esc"], text: "clear selection, close what is open" },
  { keys: ["?"], text: "this help" },
];
