// "gemm kind:compute >100us": words that a name must hold, kinds, limits of duration. The C++ side reads the same.
import { parseTime } from "./format.ts";

export interface SearchQuery {
  words: string[]; // lower case
  kinds: string[];
  leastNs: number | null;
  mostNs: number | null;
  error: string | null;
}

export function parseSearch(text: string): SearchQuery {
  const query: SearchQuery = { words: [], kinds: [], leastNs: null, mostNs: null, error: null };
  for (const word of text.trim().split(/\s+/)) {
    if (word === "") continue;
    if (/^kind:/i.test(word)) query.kinds.push(word.slice(5).toLowerCase());
    else if (/^[<>]/.test(word)) {
      const limit = parseTime(word.replace(/^[<>]=?/, ""));
      if (limit === null) query.error = `expected a time such as >100us, found ${word}`;
      else if (word.startsWith(">")) query.leastNs = limit;
      else query.mostNs = limit;
    } else query.words.push(word.toLowerCase());
  }
  return query;
}
