import { timestampMs } from "@bufbuild/protobuf/wkt";
import {
  type HistoryColumn,
  historyColumns,
  type RoomColumn,
  roomColumns,
} from "../../core/collections/history-columns.js";
import type {
  ClassHistory,
  GetHistoryResponse,
  ReplicaHistory,
  ServiceHistory,
} from "../../gen/headgate/admin/v1/admin_pb.js";

/** Length of the displayed history, in seconds. */
export const historySeconds = 900;

/** Minimum time range of a plot, in seconds. */
const windowSecondsMin = 60;

/** If a replica's newest step is older than the fleet's by more than this, it is ignored. */
const lagSecondsMax = 3;

/** One second of one replica; `degraded` is 1 while its store was bypassed. */
export type HistoryPoint = Readonly<Record<HistoryColumn, number>>;

/** One second of a service at one replica. */
export interface ServicePoint {
  readonly limit: number;
  readonly inFlight: number;
  readonly waiting: number;
  readonly rttMs: number;
  readonly minRttMs: number;
  readonly gradient: number;
  /** By class. */
  readonly admitted: Readonly<Record<string, number>>;
  readonly refused: Readonly<Record<string, number>>;
}

/**
 * One second of a waiting room: visitors, visitors per second, the announced wait in seconds (0:
 * unknown), and the waits that ended with their sums.
 */
export type RoomPoint = Readonly<Record<RoomColumn, number>>;

type Ring<T> = Map<number, T>;

/** Counts of a rule in ten seconds. */
export interface RulePoint {
  readonly hits: number;
  readonly overLimit: number;
}

/** Known data of the last 15 minutes, separately for each replica. */
export class FleetHistory {
  readonly #replicas = new Map<string, Ring<HistoryPoint>>();
  readonly #services = new Map<string, Map<string, Ring<ServicePoint>>>();
  readonly #rules = new Map<string, Map<string, Ring<RulePoint>>>();
  readonly #rooms = new Map<string, Map<string, Ring<RoomPoint>>>();
  /** Seconds in which replicas did not answer, with the number of these replicas. */
  readonly #silent = new Map<number, number>();

  /** Adds an answer of the fleet, received at `nowMs`. */
  add({ replicas, silentReplicas }: GetHistoryResponse, nowMs: number): void {
    for (const one of replicas) this.#addReplica(one);
    const second = Math.floor(nowMs / 1_000);
    if (silentReplicas > 0) this.#silent.set(second, silentReplicas);
    this.#prune(second);
  }

  #addReplica(one: ReplicaHistory): void {
    const ring = entryOf(this.#replicas, one.replica, () => new Map());
    const first = secondOf(one.start);
    if (first !== undefined) {
      for (const i of one.admitted.keys()) ring.set(first + i, pointOf(one, i));
    }
    for (const service of one.services) {
      const rings = entryOf(this.#services, service.name, () => new Map());
      const own = entryOf(rings, one.replica, () => new Map());
      const start = secondOf(service.start);
      if (start === undefined) continue;
      for (const i of service.inFlight.keys()) own.set(start + i, servicePointOf(service, i));
    }
    for (const room of one.rooms) {
      const rings = entryOf(this.#rooms, room.name, () => new Map());
      const own = entryOf(rings, one.replica, () => new Map());
      const start = secondOf(room.start);
      if (start === undefined) continue;
      for (const i of room.waiting.keys()) {
        own.set(
          start + i,
          valuesOf(roomColumns, (field) => room[field][i] ?? 0),
        );
      }
    }
    for (const { domain, label, start, hits, overLimit } of one.rules) {
      const rings = entryOf(this.#rules, ruleId({ domain, label }), () => new Map());
      const own = entryOf(rings, one.replica, () => new Map());
      const from = secondOf(start);
      if (from === undefined) continue;
      for (const [i, count] of hits.entries()) {
        // Steps of replicas end at different seconds.
        const step = Math.floor((from + 10 * i) / 10) * 10;
        own.set(step, { hits: count, overLimit: overLimit[i] ?? 0 });
      }
    }
  }

  #prune(now: number): void {
    const oldest = now - historySeconds - 60;
    const rings: Ring<unknown>[] = [...this.#replicas.values(), this.#silent];
    for (const kept of [this.#services, this.#rules, this.#rooms]) {
      for (const own of kept.values()) rings.push(...own.values());
    }
    for (const ring of rings) {
      for (const second of ring.keys()) {
        if (second >= oldest) break;
        ring.delete(second);
      }
    }
  }

  /** The last second that all answering replicas have reported; undefined before the first. */
  get end(): number | undefined {
    const ends = [...this.#replicas.values()].flatMap((ring) => lastOf(ring));
    const newest = Math.max(...ends);
    const living = ends.filter((end) => end >= newest - lagSecondsMax);
    return living.length === 0 ? undefined : Math.min(...living);
  }

  /** Names of replicas that have reported in the last seconds. */
  get replicas(): readonly string[] {
    const end = this.end ?? 0;
    return [...this.#replicas]
      .filter(([, ring]) => (lastOf(ring)[0] ?? 0) >= end - lagSecondsMax)
      .map(([name]) => name)
      .sort();
  }

  /** Returns the seconds of the window, each with the sums of the replicas that reported it. */
  timeline(): readonly FleetSecond[] {
    return this.#window((second) => {
      const points = [...this.#replicas.values()].flatMap((ring) => ring.get(second) ?? []);
      return points.length === 0 ? undefined : sumPoints(points);
    });
  }

  /** Returns the same for a service. */
  serviceTimeline(name: string, isShared: boolean): readonly ServiceSecond[] {
    const rings = [...(this.#services.get(name)?.values() ?? [])];
    return this.#window((second) => {
      const points = rings.flatMap((ring) => ring.get(second) ?? []);
      return points.length === 0 ? undefined : sumService(points, isShared);
    });
  }

  /** Returns the same for a waiting room: its line is the same everywhere, and waits are summed. */
  roomTimeline(name: string): readonly Second<RoomPoint>[] {
    const rings = [...(this.#rooms.get(name)?.values() ?? [])];
    return this.#window((second) => {
      const points = rings.flatMap((ring) => ring.get(second) ?? []);
      return points.length === 0 ? undefined : mergeRoomPoints(points);
    });
  }

  /** Returns steps of ten seconds of a rule over all replicas, oldest first. */
  ruleTimeline(rule: { readonly domain: string; readonly label: string }): readonly RuleStep[] {
    const rings = [...(this.#rules.get(ruleId(rule))?.values() ?? [])];
    const steps = new Map<number, RulePoint>();
    for (const ring of rings) {
      for (const [second, { hits, overLimit }] of ring) {
        const before = steps.get(second);
        steps.set(second, {
          hits: hits + (before?.hits ?? 0),
          overLimit: overLimit + (before?.overLimit ?? 0),
        });
      }
    }
    const end = Math.max(...steps.keys());
    return [...steps]
      .filter(([second]) => second >= end - historySeconds)
      .sort(([a], [b]) => a - b)
      .map(([second, point]) => ({ second, ...point }));
  }

  #window<T>(pointAt: (second: number) => T | undefined): readonly Second<T>[] {
    const { end } = this;
    if (end === undefined) return [];
    const window = Array.from({ length: historySeconds }, (_, i) => {
      const second = end - historySeconds + 1 + i;
      return { second, point: pointAt(second), silent: this.#silent.get(second) ?? 0 };
    });
    // For a fleet that has just started, there is no earlier history to show.
    const first = window.findIndex(({ point }) => point !== undefined);
    return window.slice(Math.max(0, Math.min(first - 1, historySeconds - windowSecondsMin)));
  }
}

/** A second of the window; without a point, nothing is known about it. */
export interface Second<T> {
  readonly second: number;
  readonly point: T | undefined;
  /** Number of replicas that did not answer in it. */
  readonly silent: number;
}

/** A second of the fleet. */
export type FleetSecond = Second<HistoryPoint>;
/** A second of a service. */
export type ServiceSecond = Second<ServicePoint>;

/** Ten seconds of a rule. */
export interface RuleStep extends RulePoint {
  readonly second: number;
}

/** Takes the slowest replica's latencies; adds up Envoys and counts. */
function sumPoints(points: readonly HistoryPoint[]): HistoryPoint {
  return valuesOf(historyColumns, (column) => {
    const values = points.map((point) => point[column]);
    return /^latency|^degraded$/.test(column) ? Math.max(...values) : sumOf(values);
  });
}

/** The limit is the fleet's. If Envoys share it, so are the requests in flight. */
function sumService(points: readonly ServicePoint[], isShared: boolean): ServicePoint {
  const of = (pick: (point: ServicePoint) => number): readonly number[] => points.map(pick);
  const together = isShared ? (values: readonly number[]) => Math.max(...values) : sumOf;
  const classes = (pick: (point: ServicePoint) => Readonly<Record<string, number>>) => {
    const total: Record<string, number> = {};
    for (const [name, count] of points.flatMap((point) => Object.entries(pick(point)))) {
      total[name] = (total[name] ?? 0) + count;
    }
    return total;
  };
  return {
    limit: Math.max(...of(({ limit }) => limit)),
    inFlight: together(of(({ inFlight }) => inFlight)),
    waiting: sumOf(of(({ waiting }) => waiting)),
    rttMs: Math.max(...of(({ rttMs }) => rttMs)),
    minRttMs: Math.max(...of(({ minRttMs }) => minRttMs)),
    gradient: Math.min(...of(({ gradient }) => gradient)),
    admitted: classes(({ admitted }) => admitted),
    refused: classes(({ refused }) => refused),
  };
}

/** The line is the same at all replicas; each wait ends at one of them. */
function mergeRoomPoints(points: readonly RoomPoint[]): RoomPoint {
  return valuesOf(roomColumns, (field) => {
    const values = points.map((point) => point[field]);
    return /^waits|Seconds$/.test(field) ? sumOf(values) : Math.max(...values);
  });
}

function sumOf(values: readonly number[]): number {
  return values.reduce((a, b) => a + b, 0);
}

function valuesOf<Name extends string>(
  names: readonly Name[],
  read: (name: Name) => number,
): Record<Name, number> {
  const entries = names.map((name) => [name, read(name)]);
  return Object.fromEntries(entries);
}

function pointOf(one: ReplicaHistory, i: number): HistoryPoint {
  return valuesOf(historyColumns, (column) => Number(one[column][i] ?? 0));
}

function servicePointOf(one: ServiceHistory, i: number): ServicePoint {
  const ofClasses = (pick: (own: ClassHistory) => readonly number[]) =>
    Object.fromEntries(one.classes.map((own) => [own.priority, pick(own)[i] ?? 0]));
  return {
    limit: one.concurrencyLimit[i] ?? 0,
    inFlight: one.inFlight[i] ?? 0,
    waiting: one.waiting[i] ?? 0,
    rttMs: one.rttMs[i] ?? 0,
    minRttMs: one.minRttMs[i] ?? 0,
    gradient: one.gradient[i] ?? 0,
    admitted: ofClasses(({ admitted }) => admitted),
    refused: ofClasses(({ refused }) => refused),
  };
}

function secondOf(time: ReplicaHistory["start"]): number | undefined {
  return time === undefined ? undefined : Math.round(timestampMs(time) / 1_000);
}

function lastOf(ring: Ring<unknown>): readonly number[] {
  const last = Math.max(...ring.keys());
  return Number.isFinite(last) ? [last] : [];
}

/** Returns a rule's name as one text, for use as a key. */
export function ruleId({
  domain,
  label,
}: {
  readonly domain: string;
  readonly label: string;
}): string {
  return JSON.stringify([domain, label]);
}

function entryOf<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}

/** Returns all refusals in a second, for any cause. */
export function refusedIn(point: HistoryPoint): number {
  return point.overLimit + point.admissionRefused + point.failureRefused + point.failed;
}

/** Returns all requests that passed in a second. */
export function passedIn(point: HistoryPoint): number {
  return point.admitted + point.admissionAdmitted;
}

/** A shaded time range of the window, in seconds. */
export interface HistoryBand {
  readonly from: number;
  readonly to: number;
  readonly kind: "outage" | "missing";
}

/** Returns times without the store, and times in which a replica did not answer. */
export function bandsOf(seconds: readonly FleetSecond[]): readonly HistoryBand[] {
  const first = seconds.findIndex(({ point }) => point !== undefined);
  const known = first < 0 ? [] : seconds.slice(first);
  return [
    ...runsOf(known, "outage", ({ point }) => {
      return point !== undefined && point.degraded + point.failurePassed > 0;
    }),
    ...runsOf(known, "missing", ({ point, silent }) => point === undefined || silent > 0),
  ];
}

function runsOf(
  seconds: readonly FleetSecond[],
  kind: HistoryBand["kind"],
  isIn: (second: FleetSecond) => boolean,
): readonly HistoryBand[] {
  const bands: { from: number; to: number; kind: HistoryBand["kind"] }[] = [];
  for (const one of seconds) {
    if (!isIn(one)) continue;
    const last = bands.at(-1);
    if (last !== undefined && one.second - last.to <= 1) last.to = one.second;
    else bands.push({ from: one.second - 1, to: one.second, kind });
  }
  return bands;
}
