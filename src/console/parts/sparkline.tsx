import { formatCount } from "../data/format.js";
import type { RuleStep } from "../data/history.js";

/** The last 15 minutes of a rule in a table's cell: calls, and those over the limit dashed. */
export function Sparkline({ steps }: { readonly steps: readonly RuleStep[] }) {
  const most = Math.max(1, ...steps.map(({ hits }) => hits));
  const pathOf = (of: (step: RuleStep) => number): string =>
    steps
      .map((step, i) => {
        const x = (100 * i) / Math.max(1, steps.length - 1);
        return `${i === 0 ? "M" : "L"}${x.toFixed(1)} ${(19 - (18 * of(step)) / most).toFixed(1)}`;
      })
      .join("");
  if (steps.length < 2) return <span class="muted">-</span>;
  const label = `at most ${formatCount(most)} hits in 10 s`;
  return (
    <svg
      class="sparkline"
      viewBox="0 0 100 20"
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      <path class="all" d={pathOf(({ hits }) => hits)} />
      <path class="over" d={pathOf(({ overLimit }) => overLimit)} />
    </svg>
  );
}
