import { diffLines } from "../../core/collections/line-diff.js";
import { showText } from "../data/shown-text.js";

const signs = { added: "+", removed: "-", same: " ", gap: "…" } as const;

/** Two texts compared, line by line; signs tell what colors tell. */
export function TextDiff({ before, after }: { readonly before: string; readonly after: string }) {
  const lines = diffLines(before, after);
  if (lines.length === 0) return <p class="empty">The texts are the same.</p>;
  return (
    <pre class="listing diff" tabIndex={0} role="region" aria-label="Changed lines">
      {lines.map(({ kind, text, line }, i) => (
        <span key={String(i)} class={`listing-line ${kind}`}>
          <span class="line-number">{kind === "gap" ? "" : line}</span>
          {signs[kind]} {showText(text)}
          {"\n"}
        </span>
      ))}
    </pre>
  );
}
