import type { Redis } from "ioredis";
import { expect } from "vitest";
import type { PermitShare } from "../../src/core/admission/permit-share.js";
import { PermitShares } from "../../src/fleet/claims/permit-shares.js";
import type { StoreConnection } from "../../src/store/connection.js";
import { FakeClock, settlePromises } from "./fake-clock.js";
import type { FakeRandom } from "./fake-random.js";
import { TestHolder } from "./permit-holder.js";
import { WaywardConnection } from "./wayward-connection.js";

/** One replica of a `PermitFleet`. */
export interface PermitReplica {
  readonly id: string;
  readonly clock: FakeClock;
  readonly connection: WaywardConnection;
  readonly holder: TestHolder;
  readonly share: PermitShare;
  isDead: boolean;
}

/** What a `PermitFleet` is made of. */
export interface PermitFleetParts {
  readonly connection: StoreConnection;
  /** A connection of the test's own to the same store. */
  readonly control: Redis;
  readonly random: FakeRandom;
  /** Names the limit. */
  readonly name: string;
  readonly limit: number;
}

const heartbeatMs = 250;

/** Longer than any history: here leases end when the test says so. */
const leaseMs = 3_600_000;

/**
 * Replicas that share one limit over a real store, each moved by hand. Whatever happens, what they
 * are granted together stays within the limit, or, after it was lowered, within what it was before.
 */
export class PermitFleet {
  readonly #parts: PermitFleetParts;
  readonly replicas: PermitReplica[] = [];
  #limit: number;
  #grantedCount = 0;

  constructor(parts: PermitFleetParts) {
    this.#parts = parts;
    this.#limit = parts.limit;
  }

  get live(): readonly PermitReplica[] {
    return this.replicas.filter((replica) => !replica.isDead);
  }

  /** What all live replicas may have in use. */
  get heldCount(): number {
    return this.live.reduce((sum, replica) => sum + held(replica), 0);
  }

  /** What requests hold at all live replicas. */
  get inUseCount(): number {
    return this.live.reduce((sum, { holder }) => sum + holder.inUseCount(), 0);
  }

  join(): PermitReplica {
    const { random, name } = this.#parts;
    const id = `replica-${this.replicas.length}`;
    const clock = new FakeClock();
    const onRun = (): void => this.check();
    const connection = new WaywardConnection({ ...this.#parts, onRun });
    const shares = new PermitShares({
      connection,
      clock,
      random: { next: () => random.next(), id: () => id },
      keyPrefix: "headgate:",
      replicaCount: () => 1,
      heartbeatMs,
      leaseMs,
    });
    const holder = new TestHolder(name, this.#limit);
    const replica = { id, clock, connection, holder, share: shares.open(holder), isDead: false };
    this.replicas.push(replica);
    return replica;
  }

  /** The replica learns of a limit, the others in moments of their own. */
  learn(replica: PermitReplica, limit: number): void {
    replica.holder.limit = limit;
    this.#limit = Math.max(...this.live.map(({ holder }) => holder.limit));
  }

  /** What a lower limit keeps from use is granted still: the next one may let it be used again. */
  check(): void {
    const sum = this.live.reduce((all, replica) => all + granted(replica), 0);
    expect(sum, "granted to all").toBeLessThanOrEqual(Math.max(this.#limit, this.#grantedCount));
    this.#grantedCount = sum;
  }

  /** One heartbeat, whatever becomes of it. */
  async beat(replica: PermitReplica): Promise<void> {
    if (replica.isDead) return;
    const { clock, connection } = replica;
    clock.advance(heartbeatMs);
    await connection.idle();
    await settlePromises();
    this.check();
  }

  async beatAll(count: number): Promise<void> {
    for (let i = 0; i < count; i += 1) for (const replica of this.live) await this.beat(replica);
  }

  /** The end of a replica's lease, as the store's clock would bring it. */
  async endLease({ id }: PermitReplica): Promise<void> {
    const { control, name } = this.#parts;
    const key = `headgate:{permits}:${name}`;
    const record = await control.hget(key, id);
    if (record !== null) await control.hset(key, id, record.replace(/\d+$/, "1"));
  }
}

function held(replica: PermitReplica): number {
  return Math.min(granted(replica), replica.holder.limit);
}

function granted({ share, clock }: PermitReplica): number {
  const nowMs = clock.monotonicMs();
  return share.isLeased(nowMs) ? share.permits(nowMs) : 0;
}
