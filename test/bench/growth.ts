import type { InProcessScenario } from "./in-process.js";
import { measureInTurn } from "./in-turn.js";
import type { GrowthDimension, ProofRow } from "./proof.js";

/** Sizes at which a decision is measured; each curve begins where the others stand still. */
const curves: readonly {
  readonly by: GrowthDimension;
  readonly counts: readonly number[];
  readonly shape: (count: number) => Omit<InProcessScenario, "name">;
}[] = [
  {
    by: "keys",
    counts: [200, 2_000, 20_000, 200_000, 1_000_000],
    shape: (keyCount) => ({ keyCount }),
  },
  {
    by: "rules",
    counts: [1, 100, 1_000, 10_000],
    shape: (ruleCount) => ({ keyCount: 20_000, ruleCount }),
  },
  {
    // One of each caller's own, and those that callers share.
    by: "limits",
    counts: [1, 2, 3, 4],
    shape: (count) => ({ keyCount: 20_000, sharedCounts: [3, 20, 1].slice(0, count - 1) }),
  },
];

/** What a decision costs from bytes to bytes, with the embedded store, as keys and rules grow. */
export async function measureGrowth(measureMs: number): Promise<readonly ProofRow[]> {
  const rows: ProofRow[] = [];
  for (const { by, counts, shape } of curves) {
    process.stderr.write(`growth with ${by} ...\n`);
    const scenarios = counts.map((count) => ({ name: String(count), ...shape(count) }));
    const { rows: measured } = await measureInTurn(scenarios, 50 * measureMs);
    const [first] = measured;
    measured.forEach(({ cpuUsPerDecision: value }, i) => {
      const count = counts[i] ?? 0;
      rows.push({
        group: "limits",
        name: `a decision, ${count.toLocaleString("en-US")} ${by}`,
        value,
        unit: "us",
        ratio: value / (first?.cpuUsPerDecision ?? 1),
        growth: { by, count },
      });
    });
  }
  return rows;
}
