import { signal } from "@preact/signals";
import { formatRoute, parseRoute, type Route } from "../data/route.js";

/** Where the reader is. */
export const route = signal<Route>(parseRoute(location.hash));

addEventListener("hashchange", () => {
  route.value = parseRoute(location.hash);
});

/** Goes to another view. */
export function goTo(hash: string): void {
  location.hash = hash;
}

/**
 * Changes how the view is set, in its URL and without a new step for the back button; an empty
 * value takes a parameter away.
 */
export function setParams(params: Readonly<Record<string, string>>): void {
  const { path, params: before } = route.peek();
  const hash = formatRoute(path, { ...before, ...params });
  if (hash === location.hash) return;
  history.replaceState(history.state, "", hash);
  route.value = parseRoute(hash);
}

/** A parameter of the view; empty where it is not set. */
export function paramOf(name: string): string {
  return route.value.params[name] ?? "";
}

const placeName = "headgate-place";

/** Keeps where the reader is while the identity provider has the page. */
export function keepPlace(): void {
  sessionStorage.setItem(placeName, location.hash);
}

const kept = sessionStorage.getItem(placeName);
sessionStorage.removeItem(placeName);
if (kept && location.hash === "") goTo(kept);

/** Why the identity provider's sign-in failed, as the server sent the browser back; told once. */
export const signInFailure = new URLSearchParams(location.search).get("signInFailed") ?? "";
if (signInFailure !== "") history.replaceState(history.state, "", `/${location.hash}`);
