// The guided tour: one stop at a time, made by the engine from this trace.
import { useEffect, useRef } from "preact/hooks";
import { endTour, tourTo } from "../state/actions/touring.ts";
import { useStore } from "../state/context.ts";
import { Text } from "./common.tsx";

export function Tour() {
  const store = useStore();
  const next = useRef<HTMLButtonElement>(null);
  const tour = store.tour.value;
  const at = tour?.at ?? -1;
  useEffect(() => {
    next.current?.focus();
    // On a narrow screen the page scrolls, and what the stop is about lies below the verdict.
    if (at >= 0 && document.documentElement.scrollHeight > innerHeight) document.querySelector(".work")?.scrollIntoView();
  }, [at]);
  if (tour === null) return null;
  const stop = tour.stops[at];
  const last = at === tour.stops.length - 1;
  return (
    <section class="tour" aria-label="Guided tour">
      <p class="faint">Tour of {store.views.length > 1 ? "trace A" : "this trace"}, {at + 1} of {tour.stops.length}{stop.word !== undefined && stop.word !== "" && <> · <Text of={stop.word} most={60} /></>}</p>
      <h2><Text of={stop.title} most={200} /></h2>
      <p><Text of={stop.text} most={2000} /></p>
      <p class="tools">
        <button type="button" disabled={at === 0} onClick={() => void tourTo(store, at - 1)}>Back</button>
        <button type="button" class="primary" ref={next} onClick={() => (last ? endTour(store) : void tourTo(store, at + 1))}>{last ? "Done" : "Next"}</button>
        {!last && <button type="button" onClick={() => endTour(store)}>End the tour</button>}
      </p>
    </section>
  );
}
