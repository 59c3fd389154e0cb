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

/** The loop hears from Envoys once a second: it has so long before it is held to its targets. */
const loopLearningMs = 25_000;

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
        const run = { ...orderOf(protection, world), meanServiceMs, seed, ...usualCallers };
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

/** The loop learns in each run before it begins to count. */
function orderOf(
  protection: Protection,
  world: Pick<OverloadOrder, "multiple" | "durationMs" | "halvedMs">,
): Pick<OverloadOrder, "protection" | "multiple" | "durationMs" | "halvedMs" | "learningMs"> {
  if (protection !== "loopOnly") return { protection, ...world };
  const { durationMs, halvedMs } = world;
  return {
    protection,
    ...world,
    learningMs: loopLearningMs,
    durationMs: durationMs + loopLearningMs,
    ...(halvedMs === undefined ? {} : { halvedMs: halvedMs + loopLearningMs }),
  };
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
  const rows = names.flatMap((name) => {
    const runs = results.filter(({ order }) => nameOf(order) === name);
    const early = runs.flatMap(({ early }) => early ?? []);
    const asked = targetsOf(runs[0]?.order);
    const summaries = runs.map(({ summary, afterwards }) => afterwards ?? summary);
    const isNotHalved = runs[0]?.order.halvedMs === undefined;
    return [
      [name, ...worstRow(summaries, asked)],
      ...(early.length > 0 && isNotHalved ? [[`${name}, before`, ...worstRow(early, {})]] : []),
    ];
  });
  return layOut([
    ["protection", "worked", "goodput", "critical", "late", "p99", "Retry-After", "targets met"],
    [
      "target, of each run",
      "98 %, halved 97 %",
      "",
      "99.9 % if it fits",
      "0.1 % of admitted",
      "300 ms at 3x",
      "on all refusals",
      "",
    ],
    ...rows,
  ]);
}

/** What is asked of each run; undefined: nothing. */
interface Targets {
  readonly worked?: number | undefined;
  readonly critical?: number | undefined;
  readonly late?: number | undefined;
  readonly p99Ms?: number | undefined;
  readonly retryAfter?: number | undefined;
}

function targetsOf(order: OverloadOrder | undefined): Targets {
  if (order === undefined || !promising.includes(order.protection)) return {};
  const { protection, multiple, halvedMs } = order;
  const isHalved = halvedMs !== undefined;
  const demand = (usualCallers.criticalShare * multiple) / (isHalved ? 0.5 : 1);
  const hasClasses = protection !== "loopOnly";
  return {
    worked: isHalved ? 0.97 : 0.98,
    critical: hasClasses && demand < 0.9 ? 0.999 : undefined,
    late: 0.001,
    p99Ms: multiple === 3 && !isHalved ? 300 : undefined,
    retryAfter: 1,
  };
}

/** The worst of runs of one kind, from five seconds after the loss where there is one. */
function worstRow(summaries: readonly LoadSummary[], asked: Targets): readonly string[] {
  const least = (of: (one: LoadSummary) => number): number => Math.min(...summaries.map(of));
  const most = (of: (one: LoadSummary) => number): number => Math.max(...summaries.map(of));
  const worked = least(({ workedRatio }) => workedRatio);
  const critical = least(({ servedRatioByClass }) => servedRatioByClass.get("critical") ?? 0);
  const late = most(lateRatio);
  const p99Ms = most(({ servedP99Ms }) => servedP99Ms);
  const answered = least(retryAfterRatio);
  const judged: readonly Judged[] = [
    { text: percent(worked, 1), isMet: isAtLeast(worked, asked.worked) },
    {
      text: percent(
        least(({ goodputRatio }) => goodputRatio),
        1,
      ),
      isMet: undefined,
    },
    { text: percent(critical, 2), isMet: isAtLeast(critical, asked.critical) },
    { text: percent(late, 2), isMet: isAtLeast(-late, asked.late && -asked.late) },
    { text: `${Math.round(p99Ms)} ms`, isMet: isAtLeast(-p99Ms, asked.p99Ms && -asked.p99Ms) },
    { text: percent(answered, 0), isMet: isAtLeast(answered, asked.retryAfter) },
  ];
  const counted = judged.filter(({ isMet }) => isMet !== undefined);
  const metCount = counted.filter(({ isMet }) => isMet).length;
  const cells = judged.map(({ text, isMet }) => `${text}${isMet === false ? " (missed)" : ""}`);
  return [...cells, counted.length === 0 ? "-" : `${metCount} of ${counted.length}`];
}

function isAtLeast(value: number, least: number | undefined): boolean | undefined {
  return least === undefined ? undefined : value >= least;
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
