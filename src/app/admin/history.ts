import { priorities } from "../../core/admission/priority.js";
import { refusalCauses } from "../../core/admission/refusal.js";
import type { Cancel, Clock } from "../../core/base/clock.js";
import {
  type HistoryColumn,
  historyColumns,
  historyCounts,
  serviceLevels,
} from "../../core/collections/history-columns.js";
import { type SeriesPart, StepSeries, stepsBackMax } from "../../core/collections/step-series.js";
import type { Admission } from "../../decide/admission/admission.js";
import type { AdmissionCounts } from "../../decide/admission/admission-counts.js";
import type { ServiceAdmission } from "../../decide/admission/service-admission.js";
import {
  type DecisionCounters,
  latencyBoundsMs,
  type RuleCounters,
} from "../../decide/rate-limit/counters.js";
import type { RoomControls } from "../../decide/waiting-room/room-view.js";
import type { Policy } from "../../policy/policy.js";
import type { ServicePolicy } from "../../policy/services/service-policy.js";
import type {
  HistoryAsk,
  HistoryPart,
  HistorySight,
  RuleColumn,
  ServiceColumn,
} from "../../rpc/admin/admin-parts.js";
import type { ServiceLevels } from "./admin-fleet.js";
import { RoomHistory } from "./room-history.js";

/** Sources of a `History`. All of them count in any case. */
export interface HistoryParts {
  readonly clock: Pick<Clock, "epochUs" | "schedule">;
  readonly counters: DecisionCounters;
  readonly policies: { current(): Policy | undefined };
  readonly admission: Pick<Admission, "services">;
  readonly levelsOf: (
    service: ServicePolicy,
    admission: ServiceAdmission | undefined,
  ) => ServiceLevels;
  readonly isDegraded: () => boolean;
  readonly envoyCount: () => number;
  readonly rooms: Pick<RoomControls, "rooms"> | undefined;
}

const stepMs = 1_000;
const ruleStepMs = 10_000;
const keptMs = 900_000;
const bounds = { stepMs, stepsMax: keptMs / stepMs };
const ruleBounds = { stepMs: ruleStepMs, stepsMax: keptMs / ruleStepMs };

/** Period that counts as "now" for shares of requests, in milliseconds. */
const recentMs = 10_000;
const recentBounds = { stepMs, stepsMax: recentMs / stepMs };

/** The maximum numbers of services, domains and rules with a history; the totals include all. */
const servicesMax = 100;
const recentServicesMax = 1_000;
const domainsMax = 64;
const rulesMax = 4_096;

/** The number of steps per service in an answer that names no service. */
const latestSteps = 60;

/** `limited`: requests refused by admission because of a rate limit, which counts them itself. */
type KeptServiceColumn = ServiceColumn | "limited";

const serviceColumns: readonly KeptServiceColumn[] = [
  ...serviceLevels,
  ...priorities.flatMap((priority): readonly ServiceColumn[] => [
    `admitted ${priority}`,
    `refused ${priority}`,
  ]),
  "limited",
];

/** The columns that callers with access to some domains only may see. */
const domainColumns = ["admitted", "overLimit", "shadow", "nearLimit"] as const;
type DomainColumn = (typeof domainColumns)[number];

const recentColumns = ["admitted", "refused"] as const;

const domainBounds = { max: domainsMax, columns: domainColumns, steps: bounds };
const serviceBounds = { max: servicesMax, columns: serviceColumns, steps: bounds };
const recentServices = { max: recentServicesMax, columns: recentColumns, steps: recentBounds };

const ruleColumns: readonly RuleColumn[] = ["hits", "overLimit"];

/** A rule that has had hits, with its counts at the last read. */
interface TrackedRule {
  /** Undefined if there are too many rules, or this one had no hits within the kept time. */
  series: StepSeries<RuleColumn> | undefined;
  hits: number;
  overLimit: number;
  movedMs: number;
}

/**
 * The last 15 minutes of this replica. Once a second it reads existing counters, so it adds no work
 * to decisions. It takes 50 KB, plus 54 KB per service, 43 KB per waiting room,
 * 14 KB per domain and 1 KB per rule.
 */
export class History implements HistorySight {
  readonly #parts: HistoryParts;
  readonly #replica = new StepSeries(historyColumns, bounds);
  readonly #services = new Map<string, StepSeries<KeptServiceColumn>>();
  readonly #recent = new Map<string, StepSeries<(typeof recentColumns)[number]>>();
  readonly #domains = new Map<string, StepSeries<DomainColumn>>();
  readonly #rules = new Map<RuleCounters, TrackedRule>();
  readonly #rooms: RoomHistory;
  readonly #gains = new Gains();
  #seriesCount = 0;
  #policy: Policy | undefined;
  #latencyCounts: readonly number[] = [];
  #lookedMs: number;
  #ruleLookedMs: number;
  #cancel: Cancel | undefined;

  constructor(parts: HistoryParts) {
    this.#parts = parts;
    this.#rooms = new RoomHistory(parts.rooms ?? { rooms: () => [] }, bounds);
    this.#lookedMs = this.#endMs(stepMs) - stepMs;
    this.#ruleLookedMs = this.#endMs(ruleStepMs);
    this.#look(this.#lookedMs + stepMs);
    this.#schedule();
  }

  /** Stops reading counters. */
  close(): void {
    this.#cancel?.();
  }

  /** The size of the stored numbers, in bytes. */
  get byteCount(): number {
    const ofRules = [...this.#rules.values()].flatMap(({ series }) => series ?? []);
    const kept = [this.#services, this.#recent, this.#domains].flatMap((one) => [...one.values()]);
    const all = [this.#replica, ...kept, ...ofRules];
    return all.reduce((sum, { byteCount }) => sum + byteCount, this.#rooms.byteCount);
  }

  read(ask: HistoryAsk): HistoryPart {
    const { sinceEpochMs, service: named, rules } = ask;
    const policy = this.#parts.policies.current();
    const services = (policy?.services ?? []).filter(ask.isServiceAsked);
    const asked = services.filter(({ name }) => named === undefined || name === named);
    const countMax = named === undefined ? latestSteps : bounds.stepsMax;
    const wanted = new Set(rules.map(({ domain, label }) => ruleId(domain, label)));
    return {
      replica:
        ask.domains === undefined
          ? this.#replica.read(sinceEpochMs)
          : this.#readOf(ask.domains, services, sinceEpochMs),
      services: asked.flatMap(({ name }) => {
        const part = this.#services.get(name)?.read(sinceEpochMs, countMax);
        return part === undefined ? [] : [{ name, ...part }];
      }),
      rules: [...this.#rules].flatMap(([{ domain, label }, { series }]) => {
        const isWanted = wanted.has(ruleId(domain, label));
        return isWanted && series ? [{ domain, label, ...series.read(sinceEpochMs) }] : [];
      }),
      rooms: this.#readRoom(ask, new Set(services.map(({ name }) => name))),
    };
  }

  /** Visitors per second who joined a waiting room in the last ten seconds, at all replicas. */
  arrivalsPerSecond(room: string): number {
    return this.#rooms.arrivalsPerSecond(room);
  }

  /** Reads a waiting room, if the caller may see its service. */
  #readRoom({ room = "", sinceEpochMs }: HistoryAsk, services: ReadonlySet<string>) {
    const views = this.#parts.rooms?.rooms() ?? [];
    const policy = views.find((view) => view.policy.name === room)?.policy;
    const part = this.#rooms.read(room, sinceEpochMs);
    if (part === undefined || policy === undefined || !services.has(policy.service)) return [];
    return [{ name: room, ...part }];
  }

  /** Decisions of admission for a service in the last ten seconds, over all classes. */
  recentOf(service: string): Record<(typeof recentColumns)[number], number> {
    const read = this.#recent.get(service)?.read(this.#lookedMs - recentMs);
    const { admitted = [], refused = [] } = read?.columns ?? {};
    return { admitted: sumOf(admitted), refused: sumOf(refused) };
  }

  /** The replica's totals, restricted to some domains and services. */
  #readOf(
    domains: readonly string[],
    services: readonly ServicePolicy[],
    sinceEpochMs: number,
  ): SeriesPart<HistoryColumn> {
    const part = this.#replica.read(sinceEpochMs);
    const { columns, startMs = 0 } = part;
    for (const name of historyCounts) columns[name].fill(0);
    const add = (to: number[], from: number[], { startMs: fromMs = 0 }: SeriesPart<string>) => {
      const ahead = (fromMs - startMs) / stepMs;
      for (const [i, value] of from.entries()) to[ahead + i] = (to[ahead + i] ?? 0) + value;
    };
    for (const domain of domains) {
      const read = this.#domains.get(domain)?.read(sinceEpochMs);
      if (read === undefined) continue;
      for (const name of domainColumns) add(columns[name], read.columns[name], read);
    }
    for (const { name } of services) {
      const read = this.#services.get(name)?.read(sinceEpochMs);
      if (read === undefined) continue;
      for (const priority of priorities) {
        add(columns.admissionAdmitted, read.columns[`admitted ${priority}`], read);
        add(columns.admissionRefused, read.columns[`refused ${priority}`], read);
      }
      const limited = read.columns.limited.map((count) => -count);
      add(columns.admissionRefused, limited, read);
    }
    const { admissionRefused: refused } = columns;
    for (const [i, count] of refused.entries()) refused[i] = Math.max(0, count);
    return part;
  }

  #schedule(): void {
    const { clock } = this.#parts;
    const pastMs = (clock.epochUs() / 1_000) % stepMs;
    this.#cancel = clock.schedule(stepMs - pastMs + 1, () => {
      const endMs = this.#endMs(stepMs);
      const aheadMs = endMs - this.#lookedMs;
      if (aheadMs <= -stepsBackMax * stepMs) this.#lookedMs = endMs - stepMs;
      if (endMs > this.#lookedMs) this.#look(endMs);
      this.#schedule();
    });
  }

  /** When the last complete step ended. */
  #endMs(lengthMs: number): number {
    return Math.floor(this.#parts.clock.epochUs() / 1_000 / lengthMs) * lengthMs;
  }

  #look(endMs: number): void {
    const { isDegraded, envoyCount, policies } = this.#parts;
    const policy = policies.current();
    if (policy !== undefined && policy !== this.#policy) this.#follow(policy);
    // After a late read, the counts since the last one are divided evenly among the missed steps.
    const steps = stepsUntil(endMs, { fromMs: this.#lookedMs, ...bounds });
    this.#gains.begin(steps.length);
    const row = {
      ...this.#decisionCounts(),
      ...this.#latencies(),
      ...this.#lookAtDomains(steps, policy),
      ...this.#lookAtServices(steps, policy),
      degraded: isDegraded() ? 1 : 0,
      envoys: envoyCount(),
    };
    for (const ms of steps) this.#replica.put(ms, (name) => row[name]);
    this.#rooms.look(steps);
    this.#lookedMs = endMs;
    this.#lookAtRules(this.#endMs(ruleStepMs), policy);
  }

  #decisionCounts() {
    const { counters } = this.#parts;
    const { local, allow, deny, error } = counters.fallbackByMode;
    return {
      admitted: this.#gains.of("admitted", counters.okCount),
      overLimit: this.#gains.of("denied", counters.deniedCount),
      failureRefused: this.#gains.of("failureRefused", totalOf(deny) + totalOf(error)),
      failurePassed: this.#gains.of("failurePassed", totalOf(allow)),
      failureLocal: this.#gains.of("failureLocal", totalOf(local)),
      failed: this.#gains.of("failed", totalOf(counters.failedByCode)),
    };
  }

  #latencies() {
    const { latencyCounts } = this.#parts.counters;
    const recent = latencyCounts.map((count, i) => count - (this.#latencyCounts[i] ?? 0));
    this.#latencyCounts = [...latencyCounts];
    return { latencyMsP50: quantileMs(recent, 0.5), latencyMsP99: quantileMs(recent, 0.99) };
  }

  #lookAtDomains(steps: readonly number[], policy: Policy | undefined) {
    let [shadow, nearLimit] = [0, 0];
    for (const [domain, totals] of this.#domainTotals(policy)) {
      const row = { ...totals };
      for (const name of domainColumns) row[name] = this.#gains.of(`${name} ${domain}`, row[name]);
      shadow += row.shadow;
      nearLimit += row.nearLimit;
      const series = seriesOf(this.#domains, domain, domainBounds);
      for (const ms of steps) series?.put(ms, (name) => row[name]);
    }
    return { shadow, nearLimit };
  }

  #domainTotals(policy: Policy | undefined): ReadonlyMap<string, Record<DomainColumn, number>> {
    const totals = new Map<string, Record<DomainColumn, number>>();
    const rules = policy === undefined ? [] : this.#parts.counters.forPolicy(policy);
    let [last, sums] = ["", { admitted: 0, overLimit: 0, shadow: 0, nearLimit: 0 }];
    for (const { domain, ok, delayed, over, shadowOver, hits } of rules) {
      // In most cases the next rule belongs to the same one.
      if (domain !== last || totals.size === 0) {
        last = domain;
        sums = totals.get(domain) ?? { admitted: 0, overLimit: 0, shadow: 0, nearLimit: 0 };
        totals.set(domain, sums);
      }
      sums.admitted += ok + delayed + shadowOver;
      sums.overLimit += over;
      sums.shadow += shadowOver;
      sums.nearLimit += hits.near;
    }
    return totals;
  }

  #lookAtServices(steps: readonly number[], policy: Policy | undefined) {
    let [admissionAdmitted, admissionRefused] = [0, 0];
    const known = new Map([...this.#parts.admission.services()].map((one) => [one.name, one]));
    for (const service of policy?.services ?? []) {
      const { name } = service;
      const admission = known.get(name);
      const series = seriesOf(this.#services, name, serviceBounds);
      const levels = series && this.#parts.levelsOf(service, admission);
      const row: Partial<Record<KeptServiceColumn, number>> = {
        ...this.#classes(name, admission?.counts),
        concurrencyLimit: Math.floor(levels?.concurrencyLimit ?? 0),
        inFlight: Math.floor(levels?.inFlight ?? 0),
        waiting: Math.floor(levels?.waitingCount ?? 0),
        rttMs: levels?.rttMs ?? 0,
        minRttMs: levels?.minRttMs ?? 0,
        gradient: levels?.gradient ?? 0,
      };
      const admitted = sumOf(priorities.map((priority) => row[`admitted ${priority}`] ?? 0));
      const refused = sumOf(priorities.map((priority) => row[`refused ${priority}`] ?? 0));
      admissionAdmitted += admitted;
      admissionRefused += refused - (row.limited ?? 0);
      const recent = seriesOf(this.#recent, name, recentServices);
      const both = { admitted, refused };
      for (const ms of steps) {
        series?.put(ms, (column) => row[column] ?? 0);
        recent?.put(ms, (column) => both[column]);
      }
    }
    return { admissionAdmitted, admissionRefused };
  }

  #classes(
    name: string,
    counts: AdmissionCounts | undefined,
  ): Partial<Record<KeptServiceColumn, number>> {
    const row: Partial<Record<KeptServiceColumn, number>> = {};
    if (counts === undefined) return row;
    let limited = 0;
    for (const priority of priorities) {
      let refused = 0;
      for (const cause of refusalCauses) refused += counts.refused.of(priority, cause);
      limited += counts.refused.of(priority, "rateLimit");
      const columns = [`admitted ${priority}`, `refused ${priority}`] as const;
      for (const [i, total] of [counts.admitted[priority], refused].entries()) {
        const column = columns[i] ?? columns[0];
        row[column] = this.#gains.of(`${column} ${name}`, total);
      }
    }
    row.limited = this.#gains.of(`limited ${name}`, limited);
    return row;
  }

  #lookAtRules(endMs: number, policy: Policy | undefined): void {
    if (endMs < this.#ruleLookedMs - keptMs) this.#ruleLookedMs = endMs - ruleStepMs;
    const steps = stepsUntil(endMs, { fromMs: this.#ruleLookedMs, ...ruleBounds });
    if (policy === undefined || steps.length === 0) return;
    this.#ruleLookedMs = endMs;
    for (const rule of this.#parts.counters.forPolicy(policy)) {
      const { total: hits, over: overLimit } = rule.hits;
      if (hits > 0) this.#lookAtRule(rule, { hits, overLimit }, steps);
    }
  }

  #lookAtRule(
    rule: RuleCounters,
    counts: Readonly<Record<RuleColumn, number>>,
    steps: readonly number[],
  ): void {
    const endMs = steps.at(-1) ?? 0;
    const known = this.#rules.get(rule);
    const tracked = known ?? { series: undefined, hits: 0, overLimit: 0, movedMs: 0 };
    if (known === undefined) this.#rules.set(rule, tracked);
    if (counts.hits > tracked.hits) tracked.movedMs = endMs;
    const isKept = endMs - tracked.movedMs < keptMs;
    if (isKept && tracked.series === undefined && this.#seriesCount < rulesMax) {
      tracked.series = new StepSeries(ruleColumns, ruleBounds);
      this.#seriesCount += 1;
    }
    if (!isKept && tracked.series !== undefined) {
      tracked.series = undefined;
      this.#seriesCount -= 1;
    }
    for (const ms of steps) {
      tracked.series?.put(ms, (name) => Math.round((counts[name] - tracked[name]) / steps.length));
    }
    Object.assign(tracked, counts);
  }

  /** Drops what the new policy no longer has. */
  #follow(policy: Policy): void {
    this.#policy = policy;
    // The sums of different sets of rules cannot be compared.
    this.#gains.forget(domainColumns);
    const names = new Set(policy.services.map(({ name }) => name));
    for (const kept of [this.#services, this.#recent]) {
      for (const name of kept.keys()) if (!names.has(name)) kept.delete(name);
    }
    for (const domain of this.#domains.keys()) {
      if (!policy.domains.has(domain)) this.#domains.delete(domain);
    }
    const rules = new Set(this.#parts.counters.forPolicy(policy));
    for (const [rule, { series }] of this.#rules) {
      if (rules.has(rule)) continue;
      this.#rules.delete(rule);
      if (series !== undefined) this.#seriesCount -= 1;
    }
  }
}

/** How much counters have grown between two reads, for each step in between. */
class Gains {
  #before = new Map<string, number>();
  #now = new Map<string, number>();
  #stepCount = 1;

  begin(stepCount: number): void {
    this.#stepCount = Math.max(1, stepCount);
    this.#before = this.#now;
    this.#now = new Map();
  }

  /** Zero for a counter that is read for the first time. */
  of(id: string, total: number): number {
    this.#now.set(id, total);
    const gain = total - (this.#before.get(id) ?? total);
    return Math.round(Math.max(0, gain) / this.#stepCount);
  }

  /** Treats the next read of these columns as the first one. */
  forget(columns: readonly string[]): void {
    for (const id of [...this.#now.keys()]) {
      if (columns.some((column) => id.startsWith(`${column} `))) this.#now.delete(id);
    }
  }
}

/** The ends of the steps that have passed since a time; at most the newest `stepsMax`. */
function stepsUntil(
  endMs: number,
  step: { readonly fromMs: number; readonly stepMs: number; readonly stepsMax: number },
): readonly number[] {
  const count = Math.min(step.stepsMax, Math.max(0, (endMs - step.fromMs) / step.stepMs));
  return Array.from({ length: count }, (_, i) => endMs - (count - 1 - i) * step.stepMs);
}

/** Undefined if the maximum is reached. */
function seriesOf<C extends string>(
  kept: Map<string, StepSeries<C>>,
  name: string,
  {
    max,
    columns,
    steps,
  }: {
    readonly max: number;
    readonly columns: readonly C[];
    readonly steps: typeof bounds;
  },
): StepSeries<C> | undefined {
  const known = kept.get(name);
  if (known !== undefined || kept.size >= max) return known;
  const series = new StepSeries(columns, steps);
  kept.set(name, series);
  return series;
}

function totalOf(counts: ReadonlyMap<string, number>): number {
  return sumOf([...counts.values()]);
}

function sumOf(counts: readonly number[]): number {
  return counts.reduce((sum, count) => sum + count, 0);
}

/** Interpolates within the bucket that contains the quantile, as if times were evenly spread. */
function quantileMs(counts: readonly number[], quantile: number): number {
  const total = sumOf(counts);
  let left = total * quantile;
  let lowMs = 0;
  for (const [i, highMs] of latencyBoundsMs.entries()) {
    const count = counts[i] ?? 0;
    if (count > 0 && left <= count) return lowMs + (highMs - lowMs) * (left / count);
    left -= count;
    lowMs = highMs;
  }
  return total === 0 ? 0 : lowMs;
}

function ruleId(domain: string, label: string): string {
  return `${domain.length}:${domain}${label}`;
}
