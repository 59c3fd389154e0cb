import type { Clock, Random } from "../../../core/base/clock.js";
import { ServiceError } from "../../../core/base/errors.js";
import type { ScriptReply, StoreConnection, StoreScript } from "../scripts/connection.js";

/** One connection to the store that replicas share, and what is theirs there. */
export interface FleetStore {
  readonly connection: StoreConnection;
  readonly clock: Clock;
  readonly random: Random;
  /** Replicas with the same one on the same store are one fleet. */
  readonly keyPrefix: string;
}

/** One run of a script. */
export interface FleetCall {
  readonly script: StoreScript;
  /** Their names behind the fleet's tag, which holds all of them in one slot. */
  readonly keys: readonly string[];
  readonly args: readonly (string | Buffer)[];
  /** When nobody waits any more, on the monotonic clock; a second from now at the latest. */
  readonly untilMs?: number;
}

/** The longest that one call to the store waits, in milliseconds. */
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

/** @throws ServiceError STORE_PROTOCOL where a script has answered no bytes */
export function replyBytes(reply: ScriptReply): Buffer {
  if (!Buffer.isBuffer(reply)) throw new ServiceError("STORE_PROTOCOL");
  return reply;
}

/** A whole number as scripts write it: exact here and in the store, or -1. */
const numberPattern = /^(-1|\d{1,16})$/;

/**
 * The numbers that a script answers, with a space between them: one for each key.
 *
 * @throws ServiceError STORE_PROTOCOL for anything else
 */
export function parseNumbers(reply: ScriptReply, count: number): readonly number[] {
  const words = Buffer.isBuffer(reply) ? reply.toString("latin1").split(" ") : [];
  const isSound = words.length === count && words.every((word) => numberPattern.test(word));
  if (!isSound) throw new ServiceError("STORE_PROTOCOL");
  return words.map(Number);
}
