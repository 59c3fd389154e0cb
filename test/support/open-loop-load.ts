import { spawn } from "node:child_process";
import { bundledProgram } from "./bundled-program.js";
import { killedAtExit } from "./killed-at-exit.js";

/** Requests of one kind. */
export interface LoadClass {
  readonly name: string;
  /** Its part of all, 0 to 1; those of an order sum to 1. */
  readonly share: number;
  readonly headers: Readonly<Record<string, string>>;
}

/** What to send. */
export interface OpenLoopOrder {
  /** Ports of loopback, in turn. */
  readonly ports: readonly number[];
  readonly perSecond: number;
  readonly durationMs: number;
  /** A client leaves this long after its request was due. */
  readonly deadlineMs: number;
  readonly classes: readonly LoadClass[];
  /** Different values of `x-caller`. */
  readonly callerCount: number;
  readonly seed: number;
  /** Draws classes from a stream of their own. Default: from that of the arrivals. */
  readonly classSeed?: number;
  /** How clients try again what was refused, failed or not answered. Default: they do not. */
  readonly retries?: LoadRetries;
}

/** Retries of a load: the wait doubles with each, and a random part of it passes. */
export interface LoadRetries {
  /** Attempts of each request, with the first. */
  readonly attempts: number;
  readonly backoffMs: number;
}

/** What became of one request. */
export interface LoadAnswer {
  readonly name: string;
  /** When it was due, from the load's start. */
  readonly atMs: number;
  /** How much later than that it left: a machine that is busy with other work keeps it waiting. */
  readonly lateMs: number;
  /** From when it was due to the last answer's end, or to when its client left. */
  readonly latencyMs: number;
  readonly attemptCount: number;
  /** 0: no answer in time. */
  readonly status: number;
  readonly retryAfter: boolean;
  /** Refused after a wait in Headgate's queue. */
  readonly hasWaited: boolean;
  /** How long a worker of the upstream was busy with it, in milliseconds; 0: it does not say. */
  readonly workMs: number;
}

/** A program that had no core for so long could not send, as all others could not serve. */
const stallMsMin = 100;

/** How long a stall is felt by requests that come after it, in milliseconds. */
const stallFeltMs = 1_000;

/**
 * The answers that no stall of the machine has had a part in: after one, all that was due comes at
 * once, which is another load than the one that was ordered.
 */
export function unstalled(answers: readonly LoadAnswer[]): readonly LoadAnswer[] {
  const stalls = answers.filter(({ lateMs }) => lateMs >= stallMsMin);
  return answers.filter(({ atMs }) =>
    stalls.every((stall) => {
      const endMs = stall.atMs + stall.lateMs;
      return atMs < stall.atMs - stallMsMin || atMs > endMs + stallFeltMs;
    }),
  );
}

/** Sends it, in a process of its own so that nothing else makes it late. */
export async function runOpenLoop(order: OpenLoopOrder): Promise<readonly LoadAnswer[]> {
  const script = bundledProgram(new URL("./open-loop-load-program.ts", import.meta.url));
  const child = spawn(process.execPath, [script, JSON.stringify(order)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const release = killedAtExit.add(() => child.kill("SIGKILL"));
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
  });
  const code = await new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  release();
  if (code !== 0) throw new Error(`the load ended with ${code}`);
  return JSON.parse(text) as readonly LoadAnswer[];
}
