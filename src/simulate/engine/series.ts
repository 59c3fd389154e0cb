import type { RunRecord, RunWindow } from "./run-record.js";
import type { SimulatedFleet } from "./simulated-fleet.js";
import type { SimulatedService } from "./simulated-service.js";
import type { StoreLink } from "./virtual-store.js";

interface RunSeriesParts {
  readonly record: RunRecord;
  readonly services: readonly SimulatedService[];
  readonly fleet: SimulatedFleet;
  readonly link: StoreLink;
  readonly callers: readonly {
    readonly name: string;
    readonly service: string;
    readonly deadline: number;
  }[];
}

/** Maximum number of Envoys with their own series. */
const envoySeriesMax = 16;

/** Values of consecutive seconds, by the names of their series; NaN if there is none. */
export type SeriesColumns = ReadonlyMap<string, readonly number[]>;

/** Records series with one value for each second. */
export class RunSeries {
  readonly #parts: RunSeriesParts;
  readonly #columns = new Map<string, number[]>();
  readonly #offeredTo = new Map<string, number>();
  readonly #possibleBefore = new Map<string, number>();
  readonly #backlogs = new Map<string, number>();
  readonly #countsBefore = new Map<string, number>();
  #secondCount = 0;

  constructor(parts: RunSeriesParts) {
    this.#parts = parts;
  }

  /** Values of each full second. */
  get columns(): SeriesColumns {
    return this.#columns;
  }

  /** Records the second that ends now. */
  endSecond(): void {
    const { record, services, link } = this.#parts;
    const { second } = record;
    const { offered, attempts, served, late, refused, failed, abandoned, latencies } = second;
    this.#put({ offered, attempts, served, late, refused, failed, abandoned });
    for (const [name, ratio] of [
      ["p50", 0.5],
      ["p95", 0.95],
      ["p99", 0.99],
    ] as const) {
      this.#put({ [`${name}Ms`]: latencies.quantile(ratio) ?? Number.NaN });
    }
    this.#put({ attemptsPerRequest: offered === 0 ? Number.NaN : attempts / offered });
    for (const [name, count] of second.refusals) this.#put({ [name]: count });
    this.#putSince("storeCalls", link.callCount);
    for (const service of services) this.#putService(service);
    this.#putFleet();
    second.clear();
    this.#secondCount += 1;
  }

  /** Returns the requests that a service was offered and could have served in a part of the run. */
  possible(service: string, { fromMs, toMs }: RunWindow): number {
    const seconds = this.#columns.get(`${service}.possible`) ?? [];
    let sum = 0;
    for (const [i, count] of seconds.entries()) {
      const overlapMs = Math.min(toMs, (i + 1) * 1_000) - Math.max(fromMs, i * 1_000);
      if (overlapMs > 0) sum += (count * overlapMs) / 1_000;
    }
    return sum;
  }

  #putService(service: SimulatedService): void {
    const { fleet, callers, record } = this.#parts;
    const { name, arrivedCount, busyCount, queueCount, workerCount } = service;
    let limit = 0;
    let inUse = 0;
    let waiting = 0;
    for (const headgate of fleet.replicas.flatMap(({ processes }) => processes)) {
      const found = headgate.occupancyOf(name);
      limit += found.limit;
      inUse += found.inUse;
      waiting += found.waiting;
    }
    const own = callers.filter((caller) => caller.service === name);
    const offered = own.reduce((sum, caller) => sum + record.caller(caller.name).offeredCount, 0);
    const offeredNow = offered - (this.#offeredTo.get(name) ?? 0);
    this.#offeredTo.set(name, offered);
    this.#putSince(`${name}.arrived`, arrivedCount);
    this.#put({
      [`${name}.possible`]: this.#possibleNow(service, offeredNow),
      [`${name}.workers`]: workerCount,
      [`${name}.busy`]: busyCount,
      [`${name}.queue`]: queueCount,
      [`${name}.limit`]: limit === 0 || !Number.isFinite(limit) ? Number.NaN : limit,
      [`${name}.inUse`]: inUse,
      [`${name}.waiting`]: waiting,
    });
  }

  /** Carries what was not possible in this second over to the next ones, within the deadline. */
  #possibleNow({ name, possibleCount }: SimulatedService, offered: number): number {
    const perSecond = possibleCount - (this.#possibleBefore.get(name) ?? 0);
    this.#possibleBefore.set(name, possibleCount);
    const own = this.#parts.callers.filter(({ service }) => service === name);
    const deadlineMs = own.reduce((most, { deadline }) => Math.max(most, deadline), 0);
    const wanted = offered + (this.#backlogs.get(name) ?? 0);
    const possible = Math.min(wanted, perSecond);
    const kept = Math.min(wanted - possible, (perSecond * deadlineMs) / 1_000);
    this.#backlogs.set(name, kept);
    return possible;
  }

  #putFleet(): void {
    const { envoys, replicas } = this.#parts.fleet;
    for (const { index, counters, askedCount } of replicas) {
      this.#putSince(`headgate${index + 1}.asked`, askedCount);
      this.#putSince(`headgate${index + 1}.limited`, counters.deniedCount);
    }
    if (envoys.length > envoySeriesMax) return;
    for (const { index, attemptCount } of envoys) {
      this.#putSince(`envoy${index + 1}.attempts`, attemptCount);
    }
  }

  /** Records how much a cumulative count has grown since the previous second. */
  #putSince(name: string, count: number): void {
    this.#put({ [name]: count - (this.#countsBefore.get(name) ?? 0) });
    this.#countsBefore.set(name, count);
  }

  /** Appends values. A series that starts now was 0 before. */
  #put(values: Readonly<Record<string, number>>): void {
    for (const [name, value] of Object.entries(values)) {
      const column = this.#columns.get(name);
      if (column !== undefined) column.push(value);
      else this.#columns.set(name, [...new Array<number>(this.#secondCount).fill(0), value]);
    }
  }
}
