/**
 * Child processes that never outlive us, and whose signals and exit codes are ours.
 */
import { spawn } from "node:child_process";
import { constants } from "node:os";

/** Two copies of one Ctrl-C are at most this far apart; a person's second Ctrl-C is later. */
const signalEchoMs = 500;

/** How often we look whether npm, which started us, is still there. */
const parentPollMs = 500;

/** From this signal on the children are no longer asked. */
const signalsBeforeKill = 3;

/**
 * The one owner of all child processes. Each child leads a process group of its own: a Ctrl-C
 * reaches every process of the terminal's group, and npm sends it on once more, so that a child in
 * our group would take one key press for two and skip its graceful end. Here it gets exactly what
 * we pass on.
 */
export class Supervisor {
  /** @type {Set<import("node:child_process").ChildProcess>} */
  #children = new Set();
  #signalsCount = 0;
  #lastSignalMs = Number.NEGATIVE_INFINITY;
  /** @type {number | undefined} */
  #signalCode;

  constructor() {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
      process.on(signal, () => this.#passOn(signal));
    }
    // A killed npm passes nothing on. Without npm we may be meant to outlive the shell (nohup).
    if (process.env.npm_lifecycle_event !== undefined) this.#watchParent();
    process.on("exit", () => {
      for (const child of this.#children) killGroup(child);
    });
  }

  /** The exit code that a received signal asks for; undefined without one. */
  get signalCode() {
    return this.#signalCode;
  }

  /**
   * Runs `node ARGUMENTS` once for each list, all at a time, on our own standard streams. The
   * first to end decides the exit code, and the others are asked to end too.
   * @param {string[][]} argumentLists
   * @returns {Promise<number>}
   */
  async run(argumentLists) {
    const started = argumentLists.map((args) => this.#start(process.execPath, args, "inherit"));
    const code = await Promise.race(started.map(({ ended }) => ended));
    // After a signal they all know; a second one would cut a graceful end short.
    if (this.#signalCode === undefined) for (const { child } of started) child.kill("SIGTERM");
    await Promise.allSettled(started.map(({ ended }) => ended));
    return code;
  }

  /**
   * Runs a program without input and keeps what it prints.
   * @param {string} file
   * @param {string[]} args
   * @returns {Promise<{ code: number, output: string }>}
   */
  async capture(file, args) {
    const { child, ended } = this.#start(file, args, ["ignore", "pipe", "pipe"]);
    const chunks = [];
    child.stdout.on("data", (chunk) => chunks.push(chunk));
    child.stderr.on("data", (chunk) => chunks.push(chunk));
    return { code: await ended, output: Buffer.concat(chunks).toString() };
  }

  /** Starts one child; resolves when it has ended and nothing of its group is left. */
  #start(file, args, stdio) {
    const child = spawn(file, args, { stdio, detached: true });
    this.#children.add(child);
    const ended = new Promise((resolve, reject) => {
      child.once("error", (error) => {
        this.#children.delete(child);
        reject(error);
      });
      // Before "close", which waits for all that hold the pipes, so also for what is left behind.
      child.once("exit", () => killGroup(child));
      child.once("close", (code, signal) => {
        this.#children.delete(child);
        resolve(code ?? codeOfSignal(signal));
      });
    });
    return { child, ended };
  }

  /** @param {NodeJS.Signals} signal */
  #passOn(signal) {
    const nowMs = performance.now();
    if (nowMs - this.#lastSignalMs < signalEchoMs) return;
    this.#lastSignalMs = nowMs;
    this.#signalsCount += 1;
    this.#signalCode ??= codeOfSignal(signal);
    // Nothing to end first: we wait for another process, or have not begun.
    if (this.#children.size === 0) process.exit(this.#signalCode);
    // A closed terminal is an order to stop, which programs know as SIGTERM.
    const asked = signal === "SIGHUP" ? "SIGTERM" : signal;
    for (const child of this.#children) {
      if (this.#signalsCount < signalsBeforeKill) child.kill(asked);
      else killGroup(child);
    }
  }

  #watchParent() {
    const parent = process.ppid;
    const watch = setInterval(() => {
      if (process.ppid === parent) return;
      clearInterval(watch);
      this.#passOn("SIGTERM");
    }, parentPollMs);
    watch.unref();
  }
}

/** A shell's convention, which npm and CI systems know. */
function codeOfSignal(signal) {
  return 128 + constants.signals[signal];
}

/** Ends what a child may have left behind in its group. */
function killGroup(child) {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch (error) {
    // EPERM is macOS's answer for a group that holds only processes that have just ended.
    if (error.code !== "ESRCH" && error.code !== "EPERM") throw error;
  }
}
