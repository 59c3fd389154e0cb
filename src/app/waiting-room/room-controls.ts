import type { Clock } from "../../core/base/clock.js";
import { ServiceError } from "../../core/base/errors.js";
import {
  calledBit,
  type LineEntry,
  type RoomOverride,
  type VisitAnswer,
} from "../../core/waiting-room/room-line.js";
import { lostAfterSeconds } from "../../core/waiting-room/room-rules.js";
import type { RoomAdmission } from "../../decide/waiting-room/room-admission.js";
import type { RoomDoor } from "../../decide/waiting-room/room-door.js";
import { estimateForNext, standingOf } from "../../decide/waiting-room/room-standing.js";
import type { RoomControls, RoomView, TicketView } from "../../decide/waiting-room/room-view.js";
import type { StoreRoomLine } from "../../fleet/waiting-room/store-room-line.js";
import type { RoomStore } from "../../store/coordination/room-store.js";

interface RoomControlsParts {
  readonly admission: Pick<RoomAdmission, "doors">;
  readonly store: RoomStore;
  readonly lineOf: (room: string) => StoreRoomLine;
  readonly clock: Clock;
}

/** Maximum time of the store for an operator's request, in milliseconds. */
const storeMsMax = 2_000;

/** Views and controls of waiting rooms for operators. */
export class AppRoomControls implements RoomControls {
  readonly #parts: RoomControlsParts;

  constructor(parts: RoomControlsParts) {
    this.#parts = parts;
  }

  rooms(): readonly RoomView[] {
    return [...this.#parts.admission.doors.values()].map((door) => this.#view(door));
  }

  room(name: string): RoomView | undefined {
    const door = this.#parts.admission.doors.get(name);
    return door && this.#view(door);
  }

  refresh(room: string): Promise<void> {
    return this.#parts.lineOf(room).beat();
  }

  async override(room: string, override: RoomOverride | undefined): Promise<void> {
    const { store, clock } = this.#parts;
    await store.override(room, override, clock.monotonicMs() + storeMsMax);
    // A reload may have removed the room meanwhile.
    if (this.#parts.admission.doors.has(room)) await this.refresh(room);
  }

  async letIn(room: string, ticket: string): Promise<"entered" | "gone" | "forged" | "full"> {
    const door = this.#parts.admission.doors.get(room);
    const read = door?.tickets.read(ticket);
    if (door === undefined || read === undefined) return "forged";
    if (read.lineId !== this.#lineId(door)) return "gone";
    const entry = await answered((done) => door.line.letIn(read.number, done));
    if (entry.kind === "waiting") return "full";
    return entry.kind;
  }

  async explain(room: string, ticket: string): Promise<TicketView | undefined> {
    const door = this.#parts.admission.doors.get(room);
    const read = door?.tickets.read(ticket);
    if (door === undefined || read === undefined) return undefined;
    const { kind, number, second } = read;
    const { line, policy } = door;
    const head = this.#parts.lineOf(room).head;
    const isCurrent = read.lineId === head?.lineId;
    const entry = isCurrent ? await this.#entryOf(door, number) : undefined;
    const { status } = line;
    const isWaiting = kind === "waiting" && entry?.kind === "waiting" && status !== undefined;
    const nowSecond = line.second() ?? second;
    const standing = isWaiting
      ? standingOf(read, { status, second: nowSecond }, policy)
      : undefined;
    return {
      room,
      kind,
      number,
      entry,
      aheadCount: standing?.aheadCount,
      estimate: standing?.estimate,
      atMs: (head?.beganMs ?? 0) + second * 1_000,
    };
  }

  /** Reads the store's state of a number, without a visit. Undefined: the store does not answer. */
  async #entryOf({ policy, line }: RoomDoor, number: number): Promise<LineEntry | undefined> {
    const { store, clock } = this.#parts;
    const deadlineMs = clock.monotonicMs() + storeMsMax;
    const of = (from: number) => ({ from, count: 1 });
    try {
      const [word = 0] = await store.readLine(policy.name, of(number), deadlineMs);
      if (word < calledBit) {
        const silentSeconds = (line.second() ?? 0) - (word - 1);
        const isGone = word === 0 || silentSeconds > lostAfterSeconds(policy);
        return { kind: isGone ? "gone" : "waiting" };
      }
      const session = word - calledBit;
      const [holder = 0, used = 0] = await store.readSessions(policy.name, of(session), deadlineMs);
      if (used === 0 || holder !== number % 2 ** 32) return { kind: "gone" };
      return { kind: "entered", session, usedSecond: (used % calledBit) - 1 };
    } catch {
      // The caller returns what is known without the store.
      return undefined;
    }
  }

  #lineId({ policy }: RoomDoor): number | undefined {
    return this.#parts.lineOf(policy.name).head?.lineId;
  }

  #view(door: RoomDoor): RoomView {
    const { policy, counts, gateRejectRatio } = door;
    const line = this.#parts.lineOf(policy.name);
    return {
      policy,
      line,
      override: line.head?.override,
      leaderId: line.head?.leaderId,
      isLeader: line.isLeader,
      phase: line.status?.phase ?? "none",
      estimate: estimateForNext(line, policy),
      counts: counts.outcomes,
      waits: counts.waits,
      gateRejectRatio,
    };
  }
}

/** @throws ServiceError STORE_UNAVAILABLE if the line reports that it failed */
function answered(ask: (done: (answer: VisitAnswer) => void) => void): Promise<LineEntry> {
  return new Promise((resolve, reject) => {
    ask((answer) => {
      if (answer.kind === "known") resolve(answer.entry);
      else reject(new ServiceError("STORE_UNAVAILABLE"));
    });
  });
}
