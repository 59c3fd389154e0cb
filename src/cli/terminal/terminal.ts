import { MessageChannel } from "node:worker_threads";

/** Screen and keyboard, as commands see them. */
export interface Terminal {
  /** Whether output goes to a screen. */
  readonly isScreen: boolean;
  /** Whether a user can be asked: both the keyboard and the messages are on a terminal. */
  readonly canAsk: boolean;
  /** Undefined without a screen. */
  columns(): number | undefined;
  /** Undefined without a screen. */
  rows(): number | undefined;
  /** Writes a text unchanged, without a newline. */
  write(text: string): void;
  /** Asks a question, and returns the typed line; empty if the input has ended. */
  ask(question: string): Promise<string>;
  /** Passes each typed key without echo, until the returned function is called. */
  onKey(listener: (key: string) => void): () => void;
  /**
   * Calls `listener` when the program must end (Ctrl-C, a closed terminal, an orchestrator). The
   * process continues until the returned function is called.
   */
  onEnd(listener: () => void): () => void;
}

const endSignals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Size for terminals that do not know theirs and report 0. */
const defaultSize = { columns: 80, rows: 24 } as const;

/** The terminal of this process. */
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
    // Ctrl-C and Ctrl-D also end the question, with an empty answer.
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
    // Keeps the process alive meanwhile, which neither signals nor our timers do.
    const hold = new MessageChannel();
    hold.port1.on("message", () => {});
    return () => {
      for (const signal of endSignals) process.off(signal, listener);
      hold.port1.close();
    };
  },
};
