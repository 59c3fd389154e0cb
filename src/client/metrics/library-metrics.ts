import type { Admission, AdmissionSnapshot } from "../admission.js";
import type { ServerAdmission } from "../server/server-admission.js";
import type { ServerSnapshot } from "../server/server-counts.js";
import type { WindowLimiter, WindowSnapshot } from "../window-limiter.js";

/** Parts whose metrics are read. Each part of a kind has a unique name. */
export interface MeasuredParts {
  /** Admission of calls, by `createAdmission`. */
  readonly calls?: readonly Admission[];
  /** Admission of requests, by `createServerAdmission`. */
  readonly requests?: readonly ServerAdmission[];
  /** Window limiters, by the name in their series. */
  readonly windows?: Readonly<Record<string, WindowLimiter>>;
}

/** A value, and the labels of its series besides `admission`. */
export type MetricReading = readonly [value: number, labels: Readonly<Record<string, string>>];

/** A metric of the library. */
export interface LibraryMetric {
  /** In Prometheus form; a counter ends in `_total`. */
  readonly name: string;
  readonly help: string;
  /** A counter only grows; a gauge is the current value. */
  readonly kind: "counter" | "gauge";
  /** Labels besides `admission`, the name of the measured part. */
  readonly labelNames: readonly string[];
  /** Returns the current series: an entry for each measured part, by its name. */
  readonly read: (measured: MeasuredParts) => Iterable<readonly [name: string, MetricReading]>;
}

/** All metrics of the library. A value without a bound, such as no limit, is `Infinity`. */
export const libraryMetrics: readonly LibraryMetric[] = [
  ...of<AdmissionSnapshot>("client", ({ calls = [] }) => named(calls), [
    gauge("limit", "Calls that may be in flight.", ({ limit }) => limit),
    gauge("in_flight_calls", "Calls in flight.", ({ inFlight }) => inFlight),
    gauge("waiting_calls", "Calls in the queue.", ({ waiting }) => waiting),
    gauge(
      "throttle_ratio",
      "The ratio of calls that the throttle refuses, 0 to below 1.",
      (now) => now.throttleRatio,
    ),
    byLabel("gauge", "breaker_state", {
      help: "1 for the state of the circuit breaker, else 0.",
      label: "state",
      values: ({ breaker }) =>
        (["closed", "open", "halfOpen"] as const).map((state) => [state, +(state === breaker)]),
    }),
    gauge("budget_left", "Retries and hedges that the budget allows now.", (now) => now.budgetLeft),
    counter("calls_total", "Calls.", (now) => now.callsCount),
    counter("attempts_total", "Attempts of calls.", (now) => now.attemptsCount),
    counter("retries_total", "Attempts that repeat an earlier one.", (now) => now.retriesCount),
    counter("hedges_total", "Attempts beside a slow one.", (now) => now.hedgesCount),
    counter(
      "budget_refused_total",
      "Retries and hedges that the budget did not allow.",
      (now) => now.budgetRefusedCount,
    ),
    byLabel("counter", "outcomes_total", {
      help: "Attempts that ended, by what they showed.",
      label: "outcome",
      values: ({ outcomes }) => Object.entries(outcomes),
    }),
    byLabel("counter", "refused_total", {
      help: "Calls that were not made, by cause.",
      label: "cause",
      values: ({ refused }) => Object.entries(refused),
    }),
  ]),
  ...of<ServerSnapshot>("server", ({ requests = [] }) => named(requests), [
    gauge("limit", "Requests that may be in work.", ({ limit }) => limit),
    gauge("in_flight_requests", "Requests in work.", ({ inFlight }) => inFlight),
    gauge("waiting_requests", "Requests in the queue.", ({ waiting }) => waiting),
    gauge(
      "load_ratio",
      "The load by which classes are refused: 1 is full.",
      (now) => now.loadRatio,
    ),
    byLabel("gauge", "brownout_ratio", {
      help: "How much answers of a class leave out, 0 to 1.",
      label: "priority",
      values: ({ brownoutRatio }) => Object.entries(brownoutRatio),
    }),
    byLabel("counter", "admitted_total", {
      help: "Requests that were admitted, by class.",
      label: "priority",
      values: ({ admitted }) => Object.entries(admitted),
    }),
    {
      kind: "counter",
      name: "refused_total",
      labelNames: ["priority", "cause"],
      help: "Requests that were refused, by class and cause.",
      values: ({ refused }) =>
        Object.entries(refused).flatMap(([priority, causes]) =>
          Object.entries(causes).map(([cause, count]) => [count, { priority, cause }] as const),
        ),
    },
    byLabel("counter", "outcomes_total", {
      help: "Admitted requests that ended, by what they taught.",
      label: "outcome",
      values: ({ outcomes }) => Object.entries(outcomes),
    }),
    counter("waited_total", "Requests that waited and were admitted.", (now) => now.waitedCount),
    counter(
      "client_cancelled_total",
      "Requests whose client left the queue.",
      (now) => now.leftCount,
    ),
    counter(
      "bypassed_total",
      "Requests on paths that are not counted.",
      (now) => now.bypassedCount,
    ),
  ]),
  ...of<WindowSnapshot>("window", ({ windows = {} }) => Object.entries(windows), [
    gauge("size", "Places in the queue (`windowSize`).", ({ windowSize }) => windowSize),
    gauge("in_flight", "Work that runs.", ({ inFlight }) => inFlight),
    gauge("waiting", "Work in the queue.", ({ waiting }) => waiting),
    counter("queue_fulls_total", "Work that was refused (`queueFulls`).", (now) => now.queueFulls),
    counter("completed_total", "Work that was reported as done in time.", (now) => now.completed),
    counter("backed_off_total", "Work that was reported as too slow.", (now) => now.backedOff),
    counter("timed_out_total", "Work whose caller had left.", (now) => now.timedOut),
  ]),
];

/**
 * Checks that no two parts share a series.
 *
 * @throws RangeError that names the duplicate
 */
export function checkMeasured({ calls = [], requests = [] }: MeasuredParts): void {
  for (const parts of [calls, requests]) {
    const names = parts.map(({ name }) => name);
    const twice = names.find((name, i) => names.indexOf(name) !== i);
    if (twice !== undefined) throw new RangeError(`two admissions have the name ${twice}`);
  }
}

/** A metric of one kind of part, without the prefix of that kind. */
interface PartMetric<S> extends Omit<LibraryMetric, "read"> {
  readonly values: (snapshot: S) => Iterable<MetricReading>;
}

function of<S>(
  kind: string,
  parts: (measured: MeasuredParts) => Iterable<readonly [string, { snapshot(): S }]>,
  metrics: readonly PartMetric<S>[],
): readonly LibraryMetric[] {
  return metrics.map(({ values, name, ...metric }) => ({
    ...metric,
    name: `headgate_${kind}_${name}`,
    read: (measured) =>
      [...parts(measured)].flatMap(([part, source]) =>
        [...values(source.snapshot())].map((reading) => [part, reading] as const),
      ),
  }));
}

function named<T extends { readonly name: string }>(parts: readonly T[]) {
  return parts.map((part) => [part.name, part] as const);
}

function gauge<S>(name: string, help: string, read: (snapshot: S) => number): PartMetric<S> {
  return { kind: "gauge", name, help, labelNames: [], values: (now) => [[read(now), {}]] };
}

function counter<S>(name: string, help: string, read: (snapshot: S) => number): PartMetric<S> {
  return { ...gauge(name, help, read), kind: "counter" };
}

function byLabel<S>(
  kind: LibraryMetric["kind"],
  name: string,
  {
    help,
    label,
    values,
  }: {
    readonly help: string;
    readonly label: string;
    readonly values: (snapshot: S) => readonly (readonly [name: string, value: number])[];
  },
): PartMetric<S> {
  return {
    ...{ kind, name, help, labelNames: [label] },
    values: (now) => values(now).map(([one, value]) => [value, { [label]: one }]),
  };
}
