import { effect, signal } from "@preact/signals";
import { recall, remember } from "./browser.js";

/** The user's choice; `auto` follows the system. */
export type ThemeChoice = "auto" | "light" | "dark";

const choices = ["auto", "light", "dark"] as const;
const storageName = "headgate-theme";

/** Color theme of the console. */
export const theme = signal<ThemeChoice>(
  choices.find((choice) => choice === recall(storageName)) ?? "auto",
);

/** Switches to the next choice. */
export function nextTheme(): void {
  theme.value = choices[(choices.indexOf(theme.value) + 1) % choices.length] ?? "auto";
  remember(storageName, theme.value);
}

/** Incremented whenever colors may have changed, for components that paint themselves. */
export const themeChanges = signal(0);

effect(() => {
  document.documentElement.dataset["theme"] = theme.value;
  themeChanges.value = themeChanges.peek() + 1;
});

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  themeChanges.value += 1;
});
