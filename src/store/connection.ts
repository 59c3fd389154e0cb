import { createHash } from "node:crypto";

/**
 * A program that runs inside the store, atomically. It names every key it touches among its keys, so
 * that Redis-compatible engines and clusters can run it too.
 */
export interface StoreScript {
  /** What it is for; a closed set, fit for logs. */
  readonly name: string;
  /** Lua 5.1. */
  readonly text: string;
  /** SHA-1 of the text in lower-case hexadecimal: how the store is asked for it. */
  readonly sha1: string;
}

/** A script under the name that logs use for it. */
export function defineScript(name: string, text: string): StoreScript {
  return { name, text, sha1: createHash("sha1").update(text).digest("hex") };
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
 * One connection to the store, as those see it who run scripts over it. Which of them repeat a failed
 * call is said where they are made.
 */
export interface StoreConnection {
  /** Rejects with a `ServiceError` of a STORE_ code, at `deadlineMs` at the latest. */
  run(call: ScriptCall): Promise<ScriptReply>;
}
