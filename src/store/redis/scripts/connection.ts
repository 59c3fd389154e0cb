/**
 * A program that runs atomically inside the store. Its keys include every key that it uses, so that
 * Redis-compatible engines and clusters can run it too, or at least one with the same hash tag,
 * which a cluster keeps in the same slot.
 */
export interface StoreScript {
  /** Name of the script, from a closed set. */
  readonly name: string;
  /** Lua 5.1. */
  readonly text: string;
}

/** One run of a script. */
export interface ScriptCall {
  readonly script: StoreScript;
  /** Complete keys, including the prefix. */
  readonly keys: readonly string[];
  readonly args: readonly (string | Buffer)[];
  /** Monotonic time after which the caller no longer waits for the reply. */
  readonly deadlineMs: number;
}

/** A script's reply: packed bytes, a count, or nothing. */
export type ScriptReply = Buffer | number | undefined;

/**
 * One connection to the store, for running scripts. Each implementation documents whether it
 * repeats failed calls.
 */
export interface StoreConnection {
  /** Runs a script. Rejects with a `ServiceError` with a STORE_ code, at `deadlineMs` at latest. */
  run(call: ScriptCall): Promise<ScriptReply>;
}
