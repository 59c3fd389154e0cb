import { MessageChannel } from "node:worker_threads";

/** The screen and the keyboard, as commands see them. */
export interface Terminal {
  /** Whether what is printed goes to a screen. */
  readonly isScreen: boolean;
  /** Whether somebody is there who can be asked: both the keyboard and the talk are a person's. */
  readonly canAsk: boolean;
  /** Undefined where there is no screen. */
  columns(): number | undefined;
  /** Undefined where there is no screen. */
  rows(): number | undefined;
  /** Writes as it is, without a newline behind. */
  write(text: string): void;
  /** Asks, and answers the line that was typed; empty where the keyboard has ended. */
  ask(question: string): Promise<string>;
  /** Takes each key as it is typed, unechoed, until what it answers is called. */
  onKey(listener: (key: string) => void): () => void;
  /**
   * Calls once somebody wants the program to end (Ctrl-C, a closed terminal, an orchestrator);
   * until what it answers is called, the process goes on.
   */
  onEnd(listener: () => void): () => void;
}

const endSignals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Of terminals that do not know theirs, and say 0. */
const defaultSize = { columns: 80, rows: 24 } as const;

/** The process's own. */
export const processTerminal: Terminal = {
  get isScreen() {
    return process.stdout.isTTY === true;
  },
  get canAsk() {
    return process.stdin.isTTY === true && process.stderr.isTTY === true;
  },
  columns: () => (process.stdout.isTTY ? process.stdout.columns || defaultSize.columns : undefined),
  rows: () => (process.stdout.isTTY ? process.stdout.rows || defaultSize.rows : undefined),
  write: (text) => {
    process.stdout.write(text);
  },
  ask: async (question) => {
    const { createInterface } = await import("node:readline/promises");
    const lines = createInterface({ input: process.stdin, output: process.stderr });
    // Ctrl-C and Ctrl-D are an answer too: not this.
    const ended = new Promise<string>((resolve) => lines.once("close", () => resolve("")));
    try {
      return await Promise.race([lines.question(question), ended]);
    } finally {
      lines.close();
    }
  },
  onKey: (listener) => {
    const { stdin } = process;
    if (!stdin.isTTY) return () => {};
    const take = (bytes: Buffer): void => listener(bytes.toString("utf8"));
    stdin.setRawMode(true);
    stdin.on("data", take);
    stdin.resume();
    return () => {
      stdin.off("data", take);
      stdin.setRawMode(false);
      stdin.pause();
    };
  },
  onEnd: (listener) => {
    for (const signal of endSignals) process.on(signal, listener);
    // Keeps the process alive meanwhile: neither signals nor our timers do.
    const hold = new MessageChannel();
    hold.port1.on("message", () => {});
    return () => {
      for (const signal of endSignals) process.off(signal, listener);
      hold.port1.close();
    };
  },
};
