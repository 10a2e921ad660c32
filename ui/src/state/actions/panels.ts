// Which panel is open: the side, the drawer below.
import type { Drawer, Store } from "../store.ts";
import { say } from "./say.ts";

export function showSide(store: Store, side: "answers" | "details"): void {
  store.side.value = side;
  store.sideOpen.value = true;
}

export function openDrawer(store: Store, drawer: Drawer): void {
  store.drawer.value = drawer;
  if (drawer !== "none") say(store, `${drawer} below the timeline`);
}
