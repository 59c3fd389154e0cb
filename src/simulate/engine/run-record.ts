import { type Priority, priorities } from "../../core/admission/priority.js";
import { type RefusalCause, refusalCauses } from "../../core/admission/refusal.js";
import { assert } from "../../core/base/errors.js";
import { TimeHistogram } from "../../core/collections/time-histogram.js";
import { type RequestEnd, RequestTally } from "./request-tally.js";

/** A part of a run, in milliseconds from its start. */
export interface RunWindow {
  readonly fromMs: number;
  readonly toMs: number;
}

/** Requests of one caller and one class. */
interface Cell {
  readonly caller: string;
  readonly priority: Priority;
  readonly tally: RequestTally;
}

/** Outcomes of the requests that were offered in a part of a run. */
export class WindowRecord {
  readonly window: RunWindow;
  readonly #cells = new Map<string, Cell>();

  constructor(window: RunWindow) {
    this.window = window;
  }

  /** Returns the tally of one caller and one class. */
  tallyOf(caller: string, priority: Priority): RequestTally {
    const name = `${priority} ${caller}`;
    let cell = this.#cells.get(name);
    if (cell === undefined) {
      cell = { caller, priority, tally: new RequestTally() };
      this.#cells.set(name, cell);
    }
    return cell.tally;
  }

  /** Adds up the tallies of all wanted callers and classes. */
  sum(isWanted: (cell: Pick<Cell, "caller" | "priority">) => boolean = () => true): RequestTally {
    const total = new RequestTally();
    for (const cell of this.#cells.values()) if (isWanted(cell)) total.merge(cell.tally);
    return total;
  }
}

/** Counts of one second, regardless of when the requests were offered. */
class SecondRecord {
  offered = 0;
  attempts = 0;
  served = 0;
  late = 0;
  refused = 0;
  failed = 0;
  abandoned = 0;
  /** Refusals by the name of their series: `refusedBy.<cause>`, `refusedOf.<class>` and both. */
  readonly refusals = new Map<string, number>();
  readonly latencies = new TimeHistogram();

  /** Counts the end of a request. */
  add(end: RequestEnd, priority: Priority): void {
    if (end.kind === "served") {
      if (end.isInTime) this.served += 1;
      else this.late += 1;
      this.latencies.add(end.latencyMs);
    } else this[end.kind] += 1;
    if (end.kind !== "refused") return;
    for (const name of refusalNames(end.cause, priority)) {
      this.refusals.set(name, (this.refusals.get(name) ?? 0) + 1);
    }
  }

  /** Resets all counts. */
  clear(): void {
    this.offered = 0;
    this.attempts = 0;
    this.served = 0;
    this.late = 0;
    this.refused = 0;
    this.failed = 0;
    this.abandoned = 0;
    for (const name of this.refusals.keys()) this.refusals.set(name, 0);
    this.latencies.clear();
  }
}

const knownNames = new Map<RefusalCause, ReadonlyMap<Priority, readonly string[]>>(
  refusalCauses.map((cause) => [
    cause,
    new Map(
      priorities.map((priority) => [
        priority,
        [`refusedBy.${cause}`, `refusedOf.${priority}`, `refusedBy.${cause}.${priority}`],
      ]),
    ),
  ]),
);

function refusalNames(cause: RefusalCause, priority: Priority): readonly string[] {
  return knownNames.get(cause)?.get(priority) ?? [];
}

/** One request of a caller, from its first attempt to its end. */
export class OpenRequest {
  readonly #record: CallerRecord;
  priority: Priority = "normal";
  key = 0;
  startMs = 0;
  attemptCount = 0;
  tallies: readonly RequestTally[] = [];

  constructor(record: CallerRecord) {
    this.#record = record;
  }

  /** Counts another attempt. */
  attempted(): void {
    this.attemptCount += 1;
    this.#record.second.attempts += 1;
    for (const tally of this.tallies) tally.attemptCount += 1;
  }

  /** Counts the end of the request, which must not be used afterwards. */
  ended(end: RequestEnd): void {
    for (const tally of this.tallies) tally.add(end);
    this.#record.ended(this, end);
  }
}

/** Counts the requests of one caller. */
export class CallerRecord {
  readonly #name: string;
  readonly second: SecondRecord;
  #tallies: ReadonlyMap<Priority, readonly RequestTally[]> = new Map();
  /** Ended requests, which are reused. */
  readonly #free: OpenRequest[] = [];
  offeredCount = 0;
  /** Number of requests without an outcome. */
  openCount = 0;

  constructor(name: string, second: SecondRecord) {
    this.#name = name;
    this.second = second;
  }

  /** Sets the windows that count from now on. */
  advance(active: readonly WindowRecord[]): void {
    this.#tallies = new Map(
      priorities.map((priority) => [
        priority,
        active.map((window) => window.tallyOf(this.#name, priority)),
      ]),
    );
  }

  /** Counts a new request. */
  offered(priority: Priority, startMs: number): OpenRequest {
    const request = this.#free.pop() ?? new OpenRequest(this);
    request.priority = priority;
    request.startMs = startMs;
    request.attemptCount = 0;
    request.tallies = this.#tallies.get(priority) ?? [];
    for (const tally of request.tallies) tally.offeredCount += 1;
    this.second.offered += 1;
    this.offeredCount += 1;
    this.openCount += 1;
    return request;
  }

  /** Counts the end of a request. */
  ended(request: OpenRequest, end: RequestEnd): void {
    this.second.add(end, request.priority);
    this.openCount -= 1;
    this.#free.push(request);
  }
}

/** Counts requests by the parts of a run in which they were offered, and by second. */
export class RunRecord {
  readonly windows: readonly WindowRecord[];
  readonly second = new SecondRecord();
  readonly #callers: ReadonlyMap<string, CallerRecord>;

  constructor(windows: readonly RunWindow[], callers: readonly string[]) {
    this.windows = windows.map((window) => new WindowRecord(window));
    this.#callers = new Map(callers.map((name) => [name, new CallerRecord(name, this.second)]));
    this.advance(0);
  }

  /** Switches to the windows that contain `nowMs`. */
  advance(nowMs: number): void {
    const active = this.windows.filter(
      ({ window: { fromMs, toMs } }) => fromMs <= nowMs && nowMs < toMs,
    );
    for (const caller of this.#callers.values()) caller.advance(active);
  }

  /** Returns the record of a caller, which must be one of those given to the constructor. */
  caller(name: string): CallerRecord {
    const found = this.#callers.get(name);
    assert(found !== undefined, "each caller has a record");
    return found;
  }

  /** Number of requests without an outcome. */
  get openCount(): number {
    return [...this.#callers.values()].reduce((sum, { openCount }) => sum + openCount, 0);
  }
}
