import { signal } from "@preact/signals";
import { formatRoute, parseRoute, type Route } from "../data/route.js";

/** The user's current location. */
export const route = signal<Route>(parseRoute(location.hash));

addEventListener("hashchange", () => {
  route.value = parseRoute(location.hash);
});

/** Goes to another view. */
export function goTo(hash: string): void {
  location.hash = hash;
}

/**
 * Changes settings of the view in its URL, without a new entry in the browser history. An empty
 * value removes a parameter.
 */
export function setParams(params: Readonly<Record<string, string>>): void {
  const { path, params: before } = route.peek();
  const hash = formatRoute(path, { ...before, ...params });
  if (hash === location.hash) return;
  history.replaceState(history.state, "", hash);
  route.value = parseRoute(hash);
}

/** Returns a parameter of the view; empty if it is not set. */
export function paramOf(name: string): string {
  return route.value.params[name] ?? "";
}

const placeName = "headgate-place";

/** Stores the location while the user is at the identity provider. */
export function keepPlace(): void {
  sessionStorage.setItem(placeName, location.hash);
}

const kept = sessionStorage.getItem(placeName);
sessionStorage.removeItem(placeName);
if (kept && location.hash === "") goTo(kept);

/** Why the identity provider's sign-in failed, from the server's redirect. Shown once. */
export const signInFailure = new URLSearchParams(location.search).get("signInFailed") ?? "";
if (signInFailure !== "") history.replaceState(history.state, "", `/${location.hash}`);
