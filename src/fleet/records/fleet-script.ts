import type { Clock } from "../../core/base/clock.js";
import { ServiceError } from "../../core/base/errors.js";
import type { ScriptReply, StoreConnection, StoreScript } from "../../store/connection.js";

/** The store that replicas share. */
export interface FleetStore {
  readonly connection: StoreConnection;
  readonly clock: Clock;
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
  { connection, clock, keyPrefix }: FleetStore,
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
