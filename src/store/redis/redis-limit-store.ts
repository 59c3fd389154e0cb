import { ServiceError } from "../../core/base/errors.js";
import type { Charge } from "../../core/limits/bucket.js";
import type { Compensation } from "../../core/limits/compensation.js";
import { limitKey } from "../../core/limits/key.js";
import { hitsMax, type LimitKey } from "../../core/limits/limit.js";
import { assertBatch } from "../batch.js";
import type { StoredBucket, StoreOutcome, StoreRequest } from "../limit-store.js";
import type { GivenBack, SplitPart } from "../split/split-part.js";
import type { RedisConnections } from "./connections.js";
import type { StoreConnection, StoreScript } from "./scripts/connection.js";
import {
  decodeGivenBack,
  encodeCompensations,
  giveBackScript,
} from "./scripts/give-back-script.js";
import { decodeBucket, decodeReply, encodeBatch } from "./scripts/pack.js";
import { takeScript } from "./scripts/take-script.js";

interface RedisLimitStoreOptions {
  readonly connections: RedisConnections;
  /** Stands before every key of ours in Redis, and nowhere else. Default `headgate:`. */
  readonly keyPrefix?: string;
  /** Told how many values under our keys were not ours; each counted as an empty bucket. */
  readonly onBadBuckets?: (count: number) => void;
}

const defaultKeyPrefix = "headgate:";

/** Keys of one DEL: Lua's `unpack` ends at about 8,000. */
const forgottenKeysMax = 512;

/**
 * A `LimitStore` in Redis, Valkey or another server that speaks their protocol and runs Lua. A
 * batch is one script run over its distinct keys, decided at the server's time.
 *
 * Charges go over the decision connection, once, inside the caller's budget. What people ask (peek,
 * forget) goes over the background connection, and is repeated while Redis is away until its
 * deadline.
 */
export class RedisLimitStore implements SplitPart {
  readonly #connections: RedisConnections;
  readonly #keyPrefix: string;
  readonly #onBadBuckets: (count: number) => void;

  constructor({ connections, keyPrefix, onBadBuckets }: RedisLimitStoreOptions) {
    this.#connections = connections;
    this.#keyPrefix = keyPrefix ?? defaultKeyPrefix;
    this.#onBadBuckets = onBadBuckets ?? (() => {});
  }

  /**
   * Rejects as a whole when Redis fails; whether it charged is then unknown, and it is not
   * repeated.
   */
  take(batch: readonly StoreRequest[], deadlineMs: number): Promise<readonly StoreOutcome[]> {
    return this.#takeOver(this.#connections.decision, { batch, deadlineMs });
  }

  /** Sent once, over the decision connection; a lost reply leaves it unknown whether it ran. */
  async giveBack(compensations: readonly Compensation[], deadlineMs: number): Promise<GivenBack> {
    const { keys, bytes } = encodeCompensations(compensations);
    const call = { script: giveBackScript, keys: this.#prefixed(keys), args: [bytes], deadlineMs };
    return decodeGivenBack(await this.#connections.decision.run(call), compensations.length);
  }

  async peek(key: LimitKey, deadlineMs: number): Promise<StoredBucket | undefined> {
    const keys = this.#prefixed([key]);
    const call = { script: peekScript, keys, args: [], deadlineMs };
    const reply = await this.#connections.background.run(call);
    if (!Buffer.isBuffer(reply) || reply.length < 8) throw new ServiceError("STORE_PROTOCOL");
    const bucket = decodeBucket(reply.subarray(8));
    return bucket === undefined ? undefined : { bucket, nowUs: reply.readDoubleLE(0) };
  }

  async forget(keys: readonly LimitKey[], deadlineMs: number): Promise<number> {
    let count = 0;
    for (let at = 0; at < keys.length; at += forgottenKeysMax) {
      const some = this.#prefixed(keys.slice(at, at + forgottenKeysMax));
      const call = { script: forgetScript, keys: some, args: [], deadlineMs };
      const reply = await this.#connections.background.run(call);
      if (typeof reply !== "number") throw new ServiceError("STORE_PROTOCOL");
      count += reply;
    }
    return count;
  }

  /**
   * Charges a bucket of its own over the decision connection: a full or read-only Redis fails it.
   */
  async ping(deadlineMs: number): Promise<void> {
    await this.take([once(probe)], deadlineMs);
  }

  /**
   * Checks at start that Redis lets us in and lets us do everything, waiting for it until the
   * deadline. STORE_ACCESS_DENIED says in words for a person what to look at; any other code may
   * pass by itself.
   */
  async verify(deadlineMs: number): Promise<void> {
    const connection = this.#connections.decisionPatiently;
    await this.#takeOver(connection, { batch: [once(slowProbe)], deadlineMs });
    await this.#takeOver(connection, { batch: [once(refundedProbe)], deadlineMs });
  }

  close(): Promise<void> {
    return this.#connections.close();
  }

  async #takeOver(connection: StoreConnection, { batch, deadlineMs }: Ask) {
    if (batch.length === 0) return [];
    assertBatch(batch);
    const { keys, bytes } = encodeBatch(batch);
    const call = { script: takeScript, keys: this.#prefixed(keys), args: [bytes], deadlineMs };
    const { outcomes, badBucketCount } = decodeReply(await connection.run(call), batch);
    if (badBucketCount > 0) this.#onBadBuckets(badBucketCount);
    return outcomes;
  }

  #prefixed(keys: readonly LimitKey[]): readonly string[] {
    return keys.map((key) => this.#keyPrefix + key);
  }
}

/** Asks for one hit of a limit that always has room and drains at once: it decides and writes. */
const probe: Charge = {
  // No policy has an empty domain, so nobody's bucket is met.
  key: limitKey("", [], { name: "probe", periodUs: 1_000_000 }),
  hits: hitsMax,
  periodUs: 1_000_000,
  burst: hitsMax,
  cost: 1,
  role: "enforce",
  isRefund: false,
  peekExhausted: false,
};

/** A probe that stays for a second, and the refund that deletes it. */
const slowProbe: Charge = { ...probe, hits: 1, burst: 315_360_000 };
const refundedProbe: Charge = { ...slowProbe, isRefund: true };

function once(charge: Charge): StoreRequest {
  return { charges: [charge], multiplicity: 1 };
}

interface Ask {
  readonly batch: readonly StoreRequest[];
  readonly deadlineMs: number;
}

/** MGET, unlike GET, answers nothing for a value of another type. */
const peekScript: StoreScript = {
  name: "peek",
  text: `
local time = redis.call('TIME')
local nowUs = tonumber(time[1]) * 1000000 + tonumber(time[2])
return struct.pack('<d', nowUs) .. (redis.call('MGET', KEYS[1])[1] or '')
`,
};

const forgetScript: StoreScript = {
  name: "forget",
  text: "return redis.call('DEL', unpack(KEYS))",
};
