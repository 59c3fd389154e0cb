import type { Random } from "../../src/core/base/clock.js";
import { ServiceError } from "../../src/core/base/errors.js";
import type { ScriptCall, ScriptReply, StoreConnection } from "../../src/store/connection.js";
import { soon } from "./redis-store.js";

/** What becomes of a call: `late` reaches the store after its caller has given up. */
export type CallFate = "answered" | "lost" | "unanswered" | "late";

/** What a `WaywardConnection` is made of. */
export interface WaywardParts {
  /** What reaches the real store. */
  readonly connection: StoreConnection;
  readonly random: Random;
  /** Told after each run in the store, before its caller knows of it. */
  readonly onRun: () => void | Promise<void>;
}

/**
 * A connection to a real store that loses calls and replies, and delivers some calls long after
 * their callers have given up and asked again. Deadlines are the test's own clock's and not kept.
 */
export class WaywardConnection implements StoreConnection {
  readonly #parts: WaywardParts;
  readonly #late: ScriptCall[] = [];
  readonly #pending = new Set<Promise<unknown>>();
  /** What becomes of the next calls. */
  fate: CallFate = "answered";

  constructor(parts: WaywardParts) {
    this.#parts = parts;
  }

  /** Calls that their callers wait for. */
  get pendingCount(): number {
    return this.#pending.size;
  }

  run(call: ScriptCall): Promise<ScriptReply> {
    const running = this.#meet(call, this.fate).finally(() => this.#pending.delete(running));
    this.#pending.add(running);
    return running;
  }

  /** Resolves when no caller waits for a call. */
  async idle(): Promise<void> {
    while (this.#pending.size > 0) await Promise.allSettled(this.#pending);
  }

  /** Lets one of the calls that are on their way for long arrive, in no order. */
  async deliverOne(): Promise<void> {
    const [call] = this.#late.splice(Math.floor(this.#parts.random.next() * this.#late.length), 1);
    if (call !== undefined) await this.#reach(call);
  }

  async #meet(call: ScriptCall, fate: CallFate): Promise<ScriptReply> {
    if (fate === "lost") throw new ServiceError("STORE_TIMEOUT");
    if (fate === "late") {
      this.#late.push(call);
      throw new ServiceError("STORE_TIMEOUT");
    }
    const reply = await this.#reach(call);
    if (fate === "unanswered") throw new ServiceError("STORE_TIMEOUT");
    return reply;
  }

  async #reach(call: ScriptCall): Promise<ScriptReply> {
    const reply = await this.#parts.connection.run({ ...call, deadlineMs: soon() });
    await this.#parts.onRun();
    return reply;
  }
}
