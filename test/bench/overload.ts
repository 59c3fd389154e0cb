import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { LoadSummary } from "../support/load-summary.js";
import {
  type OverloadOrder,
  type OverloadResult,
  overloadTable,
  type Protection,
  runOverload,
} from "../support/overload-run.js";
import { Stage } from "../support/stage.js";
import { layOut } from "./report.js";

/** Where the pictures go. */
const pictureFolder = "test-output";

/** Mean service time of ten workers: 200 requests a second. */
const meanServiceMs = 50;

const protections = ["none", "staticBreaker", "adaptiveConcurrency", "headgate"] as const;

/** Without retries by every protection, then with those that callers' Envoys make. */
const runs: readonly Pick<OverloadOrder, "protection" | "multiple" | "retries">[] = [
  ...[3, 10].flatMap((multiple) => protections.map((protection) => ({ protection, multiple }))),
  ...(["budget", "istio"] as const).flatMap((retries) =>
    protections.map((protection) => ({ protection, multiple: 3, retries })),
  ),
];

/** What is compared where runs are repeated: nobody there is told the number but a breaker. */
const numberless = [
  "headgateDefaults",
  "headgateQueue",
  "loopOnly",
  "staticBreaker",
  "adaptiveConcurrency",
  "admissionControl",
] as const;

/** Load, and how often it is run. */
export interface RepeatedOrder {
  /** In multiples of the upstream's capacity. At the first one half of the workers go, too. */
  readonly multiples: readonly number[];
  readonly repeatCount: number;
  readonly durationMs: number;
}

/** Of those, what is held to targets: it is to need no number. */
const promising: readonly Protection[] = numberless.slice(0, 3);

/** When half of the workers go in a run of this length; what follows is looked at for as long. */
const halvedAtMs = 8_000;

/**
 * The same by each protection that is told no number, next to a static breaker that is, several
 * times, and again while half of the workers go: one row a run, and of each the worst of all its
 * runs next to its targets.
 */
export async function tellRepeatedOverload(order: RepeatedOrder): Promise<string> {
  const { multiples, repeatCount, durationMs } = order;
  const worlds: readonly Pick<OverloadOrder, "multiple" | "durationMs" | "halvedMs">[] = [
    ...multiples.map((multiple) => ({ multiple, durationMs })),
    ...multiples.slice(0, 1).map((multiple) => {
      return { multiple, durationMs: halvedAtMs + durationMs, halvedMs: halvedAtMs };
    }),
  ];
  const results: OverloadResult[] = [];
  await mkdir(pictureFolder, { recursive: true });
  for (const world of worlds) {
    for (const protection of numberless) {
      for (let seed = 1; seed <= repeatCount; seed += 1) {
        const run = { protection, meanServiceMs, seed, ...world, ...usualCallers };
        process.stderr.write(`${nameOf(run)}, run ${seed} ...\n`);
        const stage = new Stage();
        await stage.open();
        try {
          const result = await runOverload(stage, run);
          results.push(result);
          const name = `overload-${nameOf(run).replaceAll(" ", "-")}-run-${seed}.svg`;
          await writeFile(join(pictureFolder, name), result.svg);
        } finally {
          await stage.close();
        }
      }
    }
  }
  return `${overloadTable(results)}\n\nThe worst of the runs of each:\n${worstTable(results)}`;
}

function nameOf({ protection, multiple, halvedMs }: OverloadOrder): string {
  return `${protection} ${multiple}x${halvedMs === undefined ? "" : " halved"}`;
}

/** Callers who wait for a second, and tell four classes apart. */
const usualCallers = {
  criticalShare: 0.1,
  otherShares: { high: 0.2, normal: 0.4, low: 0.3 },
  deadlineMs: 1_000,
} as const;

/** What is asked of the worst run, and what it did. */
interface Judged {
  readonly text: string;
  /** Undefined where nothing is asked. */
  readonly isMet: boolean | undefined;
}

function worstTable(results: readonly OverloadResult[]): string {
  const names = [...new Set(results.map(({ order }) => nameOf(order)))];
  const rows = names.map((name) => {
    const judged = judge(results.filter(({ order }) => nameOf(order) === name));
    const asked = judged.filter(({ isMet }) => isMet !== undefined);
    const metCount = asked.filter(({ isMet }) => isMet).length;
    const cells = judged.map(({ text, isMet }) => `${text}${isMet === false ? " (missed)" : ""}`);
    return [name, ...cells, asked.length === 0 ? "-" : `${metCount} of ${asked.length}`];
  });
  return layOut([
    ["protection", "goodput", "critical", "late", "p99", "Retry-After", "targets met"],
    [
      "target, of each run",
      "98 %, halved 97 %",
      "99.9 % if it fits",
      "0.1 % of admitted",
      "300 ms at 3x",
      "on all refusals",
      "",
    ],
    ...rows,
  ]);
}

/** The worst of runs of one kind, from five seconds after the loss where there is one. */
function judge(runs: readonly OverloadResult[]): readonly Judged[] {
  const [first] = runs;
  if (first === undefined) return [];
  const { protection, multiple, halvedMs } = first.order;
  const isHalved = halvedMs !== undefined;
  const isPromising = promising.includes(protection);
  const summaries = runs.map(({ summary, afterwards }) => afterwards ?? summary);
  const goodput = Math.min(...summaries.map(({ goodputRatio }) => goodputRatio));
  const critical = Math.min(
    ...summaries.map(({ servedRatioByClass }) => servedRatioByClass.get("critical") ?? 0),
  );
  const late = Math.max(...summaries.map(lateRatio));
  const p99Ms = Math.max(...summaries.map(({ servedP99Ms }) => servedP99Ms));
  const answered = Math.min(...summaries.map(retryAfterRatio));
  const demand = (usualCallers.criticalShare * multiple) / (isHalved ? 0.5 : 1);
  const hasClasses = isPromising && protection !== "loopOnly";
  const when = (isAsked: boolean, isMet: boolean): boolean | undefined =>
    isAsked ? isMet : undefined;
  return [
    {
      text: percent(goodput, 1),
      isMet: when(isPromising, goodput >= (isHalved ? 0.97 : 0.98)),
    },
    {
      text: percent(critical, 2),
      isMet: when(hasClasses && demand < 0.9, critical >= 0.999),
    },
    { text: percent(late, 2), isMet: when(isPromising, late <= 0.001) },
    {
      text: `${Math.round(p99Ms)} ms`,
      isMet: when(isPromising && multiple === 3 && !isHalved, p99Ms <= 300),
    },
    { text: percent(answered, 0), isMet: when(isPromising, answered === 1) },
  ];
}

/** Of the requests that were not refused: those without an answer in time. */
function lateRatio({ requestCount, refusedCount, unansweredCount }: LoadSummary): number {
  return unansweredCount / Math.max(1, requestCount - refusedCount);
}

function retryAfterRatio({ refusedCount, withoutRetryAfter }: LoadSummary): number {
  return 1 - withoutRetryAfter.length / Math.max(1, refusedCount);
}

function percent(ratio: number, digits: number): string {
  return `${(100 * ratio).toFixed(digits)} %`;
}

/**
 * An upstream of known capacity under several times its load behind a real Envoy, by what protects
 * it: one table, and a picture of each run.
 */
export async function tellOverload(durationMs: number): Promise<string> {
  const results: OverloadResult[] = [];
  await mkdir(pictureFolder, { recursive: true });
  for (const run of runs) {
    const { protection, multiple, retries = "none" } = run;
    process.stderr.write(`${protection}, ${multiple} times capacity, retries: ${retries} ...\n`);
    const stage = new Stage();
    await stage.open();
    try {
      const result = await runOverload(stage, { ...run, durationMs, meanServiceMs });
      results.push(result);
      const name = `overload-${protection}-${multiple}x-${retries}.svg`;
      await writeFile(join(pictureFolder, name), result.svg);
    } finally {
      await stage.close();
    }
  }
  return overloadTable(results);
}
