import type { RoomOverride } from "../../src/core/waiting-room/room-line.js";
import type { MemoryRooms } from "../../src/store/coordination/memory-rooms.js";
import type {
  RoomBeat,
  RoomHead,
  RoomStep,
  RoomStepAnswer,
  RoomStore,
  RoomTurn,
  RoomTurnAnswer,
} from "../../src/store/coordination/room-store.js";
import { LossyLink, type LossyLinkParts } from "./lossy-link.js";

/** Told of what the store did, right when it has. */
export interface RoomWatcher {
  turned(turn: RoomTurn, answer: RoomTurnAnswer): void;
  applied(step: RoomStep, answer: RoomStepAnswer): Promise<void>;
}

/** A store of rooms behind a network, as one replica sees it. */
export class RoomLink extends LossyLink implements RoomStore {
  readonly #inner: MemoryRooms;
  readonly #watcher: RoomWatcher;

  constructor(
    parts: LossyLinkParts & { readonly inner: MemoryRooms; readonly watcher: RoomWatcher },
  ) {
    super(parts);
    this.#inner = parts.inner;
    this.#watcher = parts.watcher;
  }

  beat(beat: RoomBeat, deadlineMs: number): Promise<RoomHead> {
    return this.call(deadlineMs, () => this.#inner.beat(beat));
  }

  turn(turn: RoomTurn, deadlineMs: number): Promise<RoomTurnAnswer> {
    return this.call(deadlineMs, async () => {
      const answer = await this.#inner.turn(turn);
      this.#watcher.turned(turn, answer);
      return answer;
    });
  }

  readLine(
    room: string,
    range: { readonly from: number; readonly count: number },
    deadlineMs: number,
  ): Promise<Uint32Array> {
    return this.call(deadlineMs, () => this.#inner.readLine(room, range));
  }

  readSessions(
    room: string,
    range: { readonly from: number; readonly count: number },
    deadlineMs: number,
  ): Promise<Uint32Array> {
    return this.call(deadlineMs, () => this.#inner.readSessions(room, range));
  }

  apply(step: RoomStep, deadlineMs: number): Promise<RoomStepAnswer> {
    return this.call(deadlineMs, async () => {
      const answer = await this.#inner.apply(step);
      await this.#watcher.applied(step, answer);
      return answer;
    });
  }

  override(room: string, override: RoomOverride | undefined, deadlineMs: number): Promise<void> {
    return this.call(deadlineMs, () => this.#inner.override(room, override));
  }

  forget(room: string, deadlineMs: number): Promise<void> {
    return this.call(deadlineMs, () => this.#inner.forget(room));
  }
}
