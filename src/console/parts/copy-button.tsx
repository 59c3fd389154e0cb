import { useSignal } from "@preact/signals";
import { copyText, later } from "../state/browser.js";

/** Copies a text, and says that it did. */
export function CopyButton({ text, label }: { readonly text: string; readonly label: string }) {
  const state = useSignal<"idle" | "copied" | "refused">("idle");
  return (
    <button
      type="button"
      onClick={async () => {
        state.value = (await copyText(text)) ? "copied" : "refused";
        later(2_000, () => {
          state.value = "idle";
        });
      }}
    >
      {state.value === "idle"
        ? label
        : state.value === "copied"
          ? "Copied"
          : "The browser does not allow it"}
    </button>
  );
}
