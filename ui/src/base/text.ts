// Strings of a trace are hostile: they may be 5,000 characters long, hold line breaks, control characters or marks that turn
// the direction of the text around them. They reach the page only through cleanText and only as text nodes.

const mostCharacters = 400;
export const mostFullCharacters = 20_000;

// Control characters, marks of direction (bidi), zero-width characters, line and paragraph separators, and the tag block.
// eslint-disable-next-line no-control-regex
const unsafe = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff\ufff9-\ufffb]|\udb40[\udc00-\udc7f]/g;
const loneSurrogate = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

// One line, at most `most` characters; what cannot be shown becomes a visible mark; an empty name says that it is empty.
export function cleanText(text: string, most = mostCharacters): string {
  if (text === "") return "(no name)";
  const cut = text.length > most ? `${text.slice(0, most - 1)}…` : text;
  return cut.replace(loneSurrogate, "\ufffd").replace(unsafe, (mark) => (mark === "\n" || mark === "\t" ? " " : "\ufffd"));
}

// The engine writes sentences for terminals: "41.6 us +- 22.1 us". The page has the signs for it. Commands and ids stay as they are.
const untouched = new Set(["full_command", "command", "rule", "id", "path", "name", "full"]);
export function withSigns<T>(answer: T): T {
  return JSON.parse(JSON.stringify(answer), (key, value: unknown) =>
    (typeof value === "string" && !untouched.has(key) ? value.replace(/(\d) us(?![\w/])/g, "$1 µs").replace(/ \+- (?=\d)/g, " ± ") : value)) as T;
}

// Several lines, for call stacks and long values.
export function cleanLines(text: string, most = mostFullCharacters): string {
  const cut = text.length > most ? `${text.slice(0, most - 1)}…` : text;
  return cut
    .split("\n")
    .map((line) => (line === "" ? "" : cleanText(line, most)))
    .join("\n");
}

// What of a name fits into `room` characters. Names differ at their ends as often as at their starts, so the middle goes.
export function fitText(text: string, room: number): string {
  if (text.length <= room) return text;
  if (room < 4) return "";
  const head = Math.ceil((room - 1) * 0.65);
  return `${text.slice(0, head)}…${text.slice(text.length - (room - 1 - head))}`;
}
