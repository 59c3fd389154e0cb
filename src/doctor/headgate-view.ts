import { parsePlain, textAt } from "./json-access.js";

/** Maximum length of a metrics page, in UTF-16 units. */
export const metricsCharsMax = 67_108_864;

/** State that Headgate reports. */
export interface HeadgateView {
  /** `ready`, `degraded` and so on; undefined if it is not reported. */
  readonly status: string | undefined;
  /** `ok` or `unavailable`; undefined if it is not reported. */
  readonly storeState: string | undefined;
  readonly policyVersion: string | undefined;
  readonly lastReloadProblem: boolean;
  readonly version: string | undefined;
  /** Metrics without labels, or summed over all of their labels. */
  readonly totals: ReadonlyMap<string, number>;
  /** Upper bound of the 99th percentile of decisions, in milliseconds; undefined: too few yet. */
  readonly decisionMsP99: number | undefined;
}

/** Reads the bodies of /readyz and /metrics. Leaves out what cannot be read. */
export function readHeadgate({
  readiness,
  metrics,
}: {
  readonly readiness: string;
  readonly metrics: string;
}): HeadgateView {
  const read = parsePlain(readiness);
  const ready = read.kind === "read" ? read.value : undefined;
  const totals = new Map<string, number>();
  const buckets: Bucket[] = [];
  let version: string | undefined;
  for (const line of metrics.slice(0, metricsCharsMax).split("\n")) {
    const sample = readSample(line);
    if (sample === undefined) continue;
    const { name, labels, value } = sample;
    totals.set(name, (totals.get(name) ?? 0) + value);
    if (name === "headgate_build_info") version = labelOf(labels, "version");
    if (name === `${decisionMetric}_bucket`) {
      const upTo = labelOf(labels, "le");
      if (upTo !== undefined) buckets.push({ upToSeconds: Number(upTo), count: value });
    }
  }
  return {
    status: textAt(ready, "status"),
    storeState: textAt(ready, "store", "state"),
    policyVersion: textAt(ready, "policy", "version"),
    lastReloadProblem: textAt(ready, "policy", "lastReloadProblem") !== undefined,
    version,
    totals,
    decisionMsP99: highQuantile(buckets),
  };
}

const decisionMetric = "headgate_decision_duration_seconds";

/** Fewer decisions have no 99th percentile, and the first ones wait for cold code. */
const decisionCountMin = 100;

interface Bucket {
  readonly upToSeconds: number;
  readonly count: number;
}

/** Returns the bound of the first bucket that contains 99 of 100 decisions. */
function highQuantile(buckets: readonly Bucket[]): number | undefined {
  const total = buckets.reduce((most, { count }) => Math.max(most, count), 0);
  if (total < decisionCountMin) return undefined;
  let leastSeconds = Number.POSITIVE_INFINITY;
  for (const { upToSeconds, count } of buckets) {
    // The last bound, +Inf, is not a number here, so it is never below `leastSeconds`.
    if (count >= 0.99 * total && upToSeconds < leastSeconds) leastSeconds = upToSeconds;
  }
  return Number.isFinite(leastSeconds) ? leastSeconds * 1_000 : undefined;
}

interface Sample {
  readonly name: string;
  readonly labels: string;
  readonly value: number;
}

/** Source: Prometheus, "Exposition formats", text. */
function readSample(line: string): Sample | undefined {
  if (line === "" || line.startsWith("#")) return undefined;
  const space = line.lastIndexOf(" ");
  const head = line.slice(0, space);
  const value = Number(line.slice(space + 1));
  const brace = head.indexOf("{");
  const name = brace === -1 ? head : head.slice(0, brace);
  if (Number.isNaN(value) || !/^[A-Za-z_:][\w:]*$/.test(name)) return undefined;
  return { name, labels: brace === -1 ? "" : head.slice(brace), value };
}

/** Reads a label whose value contains no quotes. Only such labels are needed. */
function labelOf(labels: string, name: string): string | undefined {
  return new RegExp(`[{,]${name}="([^"]*)"`).exec(labels)?.[1];
}
