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
  /** Prefix of every key of Headgate in Redis, and of no other key. Default: `headgate:`. */
  readonly keyPrefix?: string;
  /** Receives how many values under Headgate's keys were no buckets. Each counted as empty. */
  readonly onBadBuckets?: (count: number) => void;
}

const defaultKeyPrefix = "headgate:";

/** Maximum number of keys of one DEL. Lua's `unpack` fails at about 8,000. */
const forgottenKeysMax = 512;

/**
 * A `LimitStore` in Redis, Valkey or another server with their protocol and Lua. A batch is one run
 * of a script over its distinct keys, decided at the server's time.
 *
 * Charges are sent once over the decision connection, within the caller's time budget. Users'
 * requests (peek, forget) use the background connection, and are repeated until their deadline
 * while Redis is unreachable.
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
   * Rejects as a whole if Redis fails. It is then unknown whether it charged, and it is not
   * repeated.
   */
  take(batch: readonly StoreRequest[], deadlineMs: number): Promise<readonly StoreOutcome[]> {
    return this.#takeOver(this.#connections.decision, { batch, deadlineMs });
  }

  /** Sent once over the decision connection. If the reply is lost, it is unknown whether it ran. */
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
   * Charges a separate bucket over the decision connection. Fails if Redis is full or read-only.
   */
  async ping(deadlineMs: number): Promise<void> {
    await this.take([once(probe)], deadlineMs);
  }

  /**
   * Checks at start that Redis accepts the connection and permits all required commands. Waits for
   * Redis until the deadline. The message of STORE_ACCESS_DENIED tells the user what to check; any
   * other error may be temporary.
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

/** Charges one hit to a limit that always has room and drains at once, to decide and write. */
const probe: Charge = {
  // No policy has an empty domain, so this is no caller's bucket.
  key: limitKey("", [], { name: "probe", periodUs: 1_000_000 }),
  hits: hitsMax,
  periodUs: 1_000_000,
  burst: hitsMax,
  cost: 1,
  role: "enforce",
  isRefund: false,
  peekExhausted: false,
};

/** A probe whose bucket is kept for a second, and the refund that deletes it. */
const slowProbe: Charge = { ...probe, hits: 1, burst: 315_360_000 };
const refundedProbe: Charge = { ...slowProbe, isRefund: true };

function once(charge: Charge): StoreRequest {
  return { charges: [charge], multiplicity: 1 };
}

interface Ask {
  readonly batch: readonly StoreRequest[];
  readonly deadlineMs: number;
}

/** Uses MGET, which returns nothing for a value of another type, unlike GET. */
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
