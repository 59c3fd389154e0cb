import { signal } from "@preact/signals";
import { formatRoute } from "../data/route.js";
import { later } from "../state/browser.js";
import { goTo } from "../state/location.js";
import { navigation } from "./navigation.js";

/** Which of the two boxes with a keyboard shortcut is open. */
export const openBox = signal<"none" | "search" | "help">("none");

/** Time that a `g` waits for its second key, in milliseconds. */
const sequenceMs = 1_500;

/** Listens for the shortcuts that work everywhere: `/`, `?` and `g` with a letter. */
export function listenToKeys(): void {
  let isGoing = false;
  document.addEventListener("keydown", (event) => {
    const { key, ctrlKey, metaKey, altKey } = event;
    // For an event in a shadow root, such as the editor, `target` is only the host.
    const [target] = event.composedPath();
    if ((ctrlKey || metaKey) && key === "k") {
      event.preventDefault();
      openBox.value = "search";
      return;
    }
    if (ctrlKey || metaKey || altKey || isTyping(target)) return;
    if (document.querySelector("dialog[open]")) return;
    const entry = isGoing ? navigation.find((one) => one.key === key) : undefined;
    isGoing = false;
    if (entry !== undefined) goTo(formatRoute([entry.name]));
    else if (key === "/" || key === "?") {
      event.preventDefault();
      openBox.value = key === "/" ? "search" : "help";
    } else if (key === "g") {
      isGoing = true;
      later(sequenceMs, () => {
        isGoing = false;
      });
    }
  });
}

function isTyping(target: unknown): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
}
