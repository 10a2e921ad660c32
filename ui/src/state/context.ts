// The store, for every component.
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Store } from "./store.ts";

const Context = createContext<Store | null>(null);

export const StoreProvider = Context.Provider;

export function useStore(): Store {
  const store = useContext(Context);
  if (store === null) throw new Error("expected a store around this component");
  return store;
}
