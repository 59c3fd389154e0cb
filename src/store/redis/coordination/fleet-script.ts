import type { Clock, Random } from "../../../core/base/clock.js";
import { ServiceError } from "../../../core/base/errors.js";
import type { ScriptReply, StoreConnection, StoreScript } from "../scripts/connection.js";

/** One connection to the store that the replicas share, and the prefix of their keys. */
export interface FleetStore {
  readonly connection: StoreConnection;
  readonly clock: Clock;
  readonly random: Random;
  /** Replicas with the same prefix on the same store are one fleet. */
  readonly keyPrefix: string;
}

/** One run of a script. */
export interface FleetCall {
  readonly script: StoreScript;
  /** Key names without the fleet's hash tag, which keeps all of them in one slot. */
  readonly keys: readonly string[];
  readonly args: readonly (string | Buffer)[];
  /** Monotonic time after which the caller no longer waits; at most a second from now. */
  readonly untilMs?: number;
}

/** Maximum wait of one call to the store, in milliseconds. */
const callMsMax = 1_000;

/**
 * Runs a script on the fleet's own keys.
 *
 * @throws ServiceError STORE_ codes
 */
export function runFleetScript(
  { connection, clock, keyPrefix }: Omit<FleetStore, "random">,
  { script, keys, args, untilMs = Number.POSITIVE_INFINITY }: FleetCall,
): Promise<ScriptReply> {
  return connection.run({
    script,
    keys: keys.map((name) => `${keyPrefix}{fleet}:${name}`),
    args,
    deadlineMs: Math.min(untilMs, clock.monotonicMs() + callMsMax),
  });
}

/** @throws ServiceError STORE_PROTOCOL if a script has not returned bytes */
export function replyBytes(reply: ScriptReply): Buffer {
  if (!Buffer.isBuffer(reply)) throw new ServiceError("STORE_PROTOCOL");
  return reply;
}

/** An integer as written by scripts: exact here and in the store, or -1. */
const numberPattern = /^(-1|\d{1,16})$/;

/**
 * Parses the numbers of a script's reply, separated by spaces.
 *
 * @throws ServiceError STORE_PROTOCOL for anything else
 */
export function parseNumbers(reply: ScriptReply, count: number): readonly number[] {
  const words = Buffer.isBuffer(reply) ? reply.toString("latin1").split(" ") : [];
  const isSound = words.length === count && words.every((word) => numberPattern.test(word));
  if (!isSound) throw new ServiceError("STORE_PROTOCOL");
  return words.map(Number);
}
