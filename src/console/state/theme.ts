import { effect, signal } from "@preact/signals";
import { recall, remember } from "./browser.js";

/** What the reader has chosen; `auto` follows the system. */
export type ThemeChoice = "auto" | "light" | "dark";

const choices = ["auto", "light", "dark"] as const;
const storageName = "headgate-theme";

/** The colors of the console. */
export const theme = signal<ThemeChoice>(
  choices.find((choice) => choice === recall(storageName)) ?? "auto",
);

/** The next choice. */
export function nextTheme(): void {
  theme.value = choices[(choices.indexOf(theme.value) + 1) % choices.length] ?? "auto";
  remember(storageName, theme.value);
}

/** Grows whenever colors may have changed, for what paints by itself. */
export const themeChanges = signal(0);

effect(() => {
  document.documentElement.dataset["theme"] = theme.value;
  themeChanges.value = themeChanges.peek() + 1;
});

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  themeChanges.value += 1;
});
