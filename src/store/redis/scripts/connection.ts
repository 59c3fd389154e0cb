/**
 * A program that runs inside the store, atomically. It names every key it touches among its keys,
 * so that Redis-compatible engines and clusters can run it too; or a key under the same hash tag,
 * which a cluster has in the same slot.
 */
export interface StoreScript {
  /** What it is for; a closed set. */
  readonly name: string;
  /** Lua 5.1. */
  readonly text: string;
}

/** One run of a script. */
export interface ScriptCall {
  readonly script: StoreScript;
  /** Whole keys, prefix included. */
  readonly keys: readonly string[];
  readonly args: readonly (string | Buffer)[];
  /** Monotonic time after which nobody waits for the reply any more. */
  readonly deadlineMs: number;
}

/** What our scripts answer: packed bytes, a count, or nothing. */
export type ScriptReply = Buffer | number | undefined;

/**
 * One connection to the store, as those see it who run scripts over it. Which of them repeat a
 * failed call is said where they are made.
 */
export interface StoreConnection {
  /** Rejects with a `ServiceError` of a STORE_ code, at `deadlineMs` at the latest. */
  run(call: ScriptCall): Promise<ScriptReply>;
}
