import type { Cancel, Clock } from "../../core/base/clock.js";
import type { RoomRules } from "../../core/waiting-room/room-rules.js";
import { type RoomLineOptions, StoreRoomLine } from "./store-room-line.js";

interface RoomLinesOptions extends Omit<RoomLineOptions, "replicaId" | "leaseMs"> {
  /** Default `defaultRoomLeaseMs`. */
  readonly leaseMs?: number;
}

/** For so long nobody enters after a leader has died: then another one takes the lead. */
const defaultRoomLeaseMs = 3_000;

/** How often each room is heard of, and led. */
const beatMs = 1_000;

/** The lines of the rooms of a policy, as one replica uses them. One timer beats for all. */
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

  /** The line of a room; undefined: the policy has no such room. */
  line(room: string): StoreRoomLine | undefined {
    return this.#lines.get(room);
  }

  /** The rooms of a policy, in place of those before. Rooms that stay keep their lines. */
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

  /** Gives all leads up. Never rejects. */
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
