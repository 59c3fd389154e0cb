import type { Clock } from "../../core/base/clock.js";
import type { MemberStore } from "./member-store.js";

/** The replicas of one process. */
export class MemoryMembers implements MemberStore {
  readonly #clock: Pick<Clock, "monotonicMs">;
  /** When they end, by name. */
  readonly #untilMs = new Map<string, number>();

  constructor(clock: Pick<Clock, "monotonicMs">) {
    this.#clock = clock;
  }

  async join({ replicaId, leaseMs }: Parameters<MemberStore["join"]>[0]): Promise<number> {
    const nowMs = this.#clock.monotonicMs();
    for (const [id, untilMs] of this.#untilMs) if (untilMs <= nowMs) this.#untilMs.delete(id);
    this.#untilMs.set(replicaId, nowMs + leaseMs);
    return this.#untilMs.size;
  }

  async leave(replicaId: string): Promise<void> {
    this.#untilMs.delete(replicaId);
  }
}
