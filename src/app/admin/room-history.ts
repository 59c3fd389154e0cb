import { type RoomColumn, roomColumns } from "../../core/collections/history-columns.js";
import { type SeriesPart, StepSeries } from "../../core/collections/step-series.js";
import type { RoomControls, RoomView } from "../../decide/waiting-room/room-view.js";

/** The maximum number of waiting rooms with a history. */
const roomsMax = 100;

/** How far back the rate of arrivals looks, in milliseconds. */
const recentMs = 10_000;

/** Maximum number of steps without a new status after which the rate of arrivals counts as 0. */
const quietStepsMax = 3;

type Waits = RoomView["waits"];

interface KeptRoom {
  readonly series: StepSeries<RoomColumn>;
  lineId: number;
  second: number;
  nextNumber: number;
  /** From the last two statuses. */
  arrivalsPerSecond: number;
  quietSteps: number;
  waits: Waits;
}

/** The last minutes of waiting rooms: 43 KB per room, read from their views once a second. */
export class RoomHistory {
  readonly #rooms: Pick<RoomControls, "rooms">;
  readonly #bounds: { readonly stepMs: number; readonly stepsMax: number };
  readonly #kept = new Map<string, KeptRoom>();
  #endMs = 0;

  constructor(
    rooms: Pick<RoomControls, "rooms">,
    bounds: { readonly stepMs: number; readonly stepsMax: number },
  ) {
    this.#rooms = rooms;
    this.#bounds = bounds;
  }

  /** The size of the stored numbers, in bytes. */
  get byteCount(): number {
    return [...this.#kept.values()].reduce((sum, { series }) => sum + series.byteCount, 0);
  }

  /**
   * Reads all rooms.
   *
   * @param steps the ends of the steps since the last call, in milliseconds since 1970
   */
  look(steps: readonly number[]): void {
    const views = this.#rooms.rooms();
    const names = new Set(views.map(({ policy }) => policy.name));
    for (const name of this.#kept.keys()) if (!names.has(name)) this.#kept.delete(name);
    for (const view of views) this.#lookAt(view, steps);
    this.#endMs = steps.at(-1) ?? this.#endMs;
  }

  /** The steps of a room that end after a time; undefined: there is no such room. */
  read(name: string, sinceEpochMs: number): SeriesPart<RoomColumn> | undefined {
    return this.#kept.get(name)?.series.read(sinceEpochMs);
  }

  /** Visitors per second who joined in the last ten seconds, at all replicas. */
  arrivalsPerSecond(name: string): number {
    const { arrivals = [] } = this.read(name, this.#endMs - recentMs)?.columns ?? {};
    return arrivals.reduce((sum, one) => sum + one, 0) / Math.max(1, arrivals.length);
  }

  #lookAt({ policy, line, estimate, waits }: RoomView, steps: readonly number[]): void {
    const kept = this.#keptOf(policy.name, waits);
    if (kept === undefined) return;
    const { status } = line;
    follow(kept, status);
    const gain = (of: keyof Waits & `${string}${"Count" | "Seconds"}`): number =>
      Math.max(0, waits[of] - kept.waits[of]) / Math.max(1, steps.length);
    const row: Readonly<Record<RoomColumn, number>> = {
      waiting: status?.waitingCount ?? 0,
      active: status?.activeCount ?? 0,
      activeMax: status?.activeCountMax ?? 0,
      arrivals: kept.arrivalsPerSecond,
      entries: status?.entriesPerSecond ?? 0,
      abandoned: (status?.abandonPerSecond ?? 0) * (status?.waitingCount ?? 0),
      estimateLow: estimate?.lowSeconds ?? 0,
      estimateHigh: estimate?.highSeconds ?? 0,
      waits: Math.round(gain("endedCount")),
      waitsInRange: Math.round(gain("inRangeCount")),
      expectedSeconds: gain("expectedSeconds"),
      actualSeconds: gain("actualSeconds"),
    };
    kept.waits = { ...waits };
    for (const ms of steps) kept.series.put(ms, (column) => row[column]);
  }

  #keptOf(name: string, waits: Waits): KeptRoom | undefined {
    const known = this.#kept.get(name);
    if (known !== undefined || this.#kept.size >= roomsMax) return known;
    const kept = {
      series: new StepSeries(roomColumns, this.#bounds),
      lineId: Number.NaN,
      second: 0,
      nextNumber: 0,
      arrivalsPerSecond: 0,
      quietSteps: 0,
      waits: { ...waits },
    };
    this.#kept.set(name, kept);
    return kept;
  }
}

/** Updates the rate. All replicas give out numbers, so their increase counts all who joined. */
function follow(kept: KeptRoom, status: RoomView["line"]["status"]): void {
  const { lineId = Number.NaN, second = 0, nextNumber = 0 } = status ?? {};
  const isSame = lineId === kept.lineId;
  const elapsed = second - kept.second;
  if (isSame && elapsed <= 0) {
    kept.quietSteps += 1;
    if (kept.quietSteps > quietStepsMax) kept.arrivalsPerSecond = 0;
    return;
  }
  kept.arrivalsPerSecond = isSame ? Math.max(0, nextNumber - kept.nextNumber) / elapsed : 0;
  Object.assign(kept, { lineId, second, nextNumber, quietSteps: 0 });
}
