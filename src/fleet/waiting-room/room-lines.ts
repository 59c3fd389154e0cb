import type { Cancel, Clock } from "../../core/base/clock.js";
import type { RoomRules } from "../../core/waiting-room/room-rules.js";
import { type RoomLineOptions, StoreRoomLine } from "./store-room-line.js";

interface RoomLinesOptions extends Omit<RoomLineOptions, "replicaId" | "leaseMs"> {
  /** Default `defaultRoomLeaseMs`. */
  readonly leaseMs?: number;
}

/** How long no visitor enters after a leader died, until another replica leads, in milliseconds. */
const defaultRoomLeaseMs = 3_000;

/** Interval at which each room is read and led, in milliseconds. */
const beatMs = 1_000;

/** The lines of the rooms of a policy, as one replica uses them. One timer serves all. */
export class RoomLines {
  readonly #clock: Clock;
  readonly #options: RoomLineOptions;
  readonly #lines = new Map<string, StoreRoomLine>();
  #cancelBeat: Cancel | undefined;
  #isStopped = false;

  constructor(options: RoomLinesOptions) {
    this.#clock = options.clock;
    this.#options = {
      ...options,
      replicaId: options.random.id(),
      leaseMs: options.leaseMs ?? defaultRoomLeaseMs,
    };
  }

  /** Returns the line of a room. Undefined if the policy has no such room. */
  line(room: string): StoreRoomLine | undefined {
    return this.#lines.get(room);
  }

  /** Replaces the rooms with those of a policy. Rooms that stay keep their lines. */
  change(rooms: readonly RoomRules[]): void {
    if (this.#isStopped) return;
    const names = new Set(rooms.map(({ name }) => name));
    for (const [name, line] of this.#lines) {
      if (names.has(name)) continue;
      this.#lines.delete(name);
      void line.stop();
    }
    for (const rules of rooms) {
      const line = this.#lines.get(rules.name);
      if (line !== undefined) line.change(rules);
      else this.#begin(rules);
    }
    if (this.#lines.size > 0) this.#cancelBeat ??= this.#clock.schedule(beatMs, () => this.#beat());
  }

  /** Resigns as the leader of all rooms. Never rejects. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancelBeat?.();
    await Promise.all([...this.#lines.values()].map((line) => line.stop()));
  }

  #begin(rules: RoomRules): void {
    const line = new StoreRoomLine(rules, this.#options);
    this.#lines.set(rules.name, line);
    void line.beat();
  }

  #beat(): void {
    const isIdle = this.#isStopped || this.#lines.size === 0;
    this.#cancelBeat = isIdle ? undefined : this.#clock.schedule(beatMs, () => this.#beat());
    for (const line of this.#lines.values()) void line.beat();
  }
}
