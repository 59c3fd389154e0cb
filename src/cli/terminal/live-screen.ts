import type { Clock } from "../../core/base/clock.js";
import type { Terminal } from "./terminal.js";

/** A screen that is drawn again and again. */
interface LiveParts {
  readonly terminal: Terminal;
  readonly clock: Clock;
  /** From one picture to the next, in milliseconds. */
  readonly everyMs: number;
  /** The lines of the next picture; none is longer than the terminal is wide. */
  readonly draw: () => Promise<readonly string[]>;
  /** Told each key but those that end it; what it changes is drawn at once. */
  readonly onKey: (key: string) => void;
}

// Source: xterm, "XTerm Control Sequences": alternate screen, cursor, erase.
const enter = "\u001b[?1049h\u001b[?25l";
const leave = "\u001b[?25h\u001b[?1049l";
const home = "\u001b[H";
const eraseLine = "\u001b[K";
const eraseBelow = "\u001b[J";

/** q, Ctrl-C, Ctrl-D and Escape; in raw mode the terminal makes no signals of them. */
const endKeys: ReadonlySet<string> = new Set(["q", "Q", "\u0003", "\u0004", "\u001b"]);

/**
 * Shows pictures until somebody ends it, and gives the terminal back as it was.
 *
 * @throws what `draw` throws
 */
export async function runLive(parts: LiveParts): Promise<void> {
  const { terminal, draw } = parts;
  const wait = new Interruptible(parts.clock);
  const stops = [
    terminal.onEnd(() => wait.end()),
    terminal.onKey((key) => {
      if (endKeys.has(key)) return wait.end();
      parts.onKey(key);
      wait.interrupt();
    }),
  ];
  terminal.write(enter);
  try {
    while (!wait.isEnded) {
      const lines = await Promise.race([draw(), wait.ended]);
      if (lines === "ended") break;
      terminal.write(picture(lines, terminal.rows() ?? lines.length));
      await wait.for(parts.everyMs);
    }
  } finally {
    terminal.write(leave);
    for (const stop of stops) stop();
  }
}

/** Over the last one, so nothing flickers; the last line has no newline, as it would scroll. */
function picture(lines: readonly string[], rows: number): string {
  const shown = lines.slice(0, rows).map((line) => line + eraseLine);
  return home + shown.join("\r\n") + eraseBelow;
}

/** Waiting that a key cuts short. */
class Interruptible {
  /** Resolves when all is over. */
  readonly ended: Promise<"ended">;
  readonly #clock: Clock;
  #isEnded = false;
  #tellEnded: () => void = () => {};
  #wake: () => void = () => {};

  constructor(clock: Clock) {
    this.#clock = clock;
    this.ended = new Promise((resolve) => {
      this.#tellEnded = () => resolve("ended");
    });
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  for(delayMs: number): Promise<void> {
    if (this.#isEnded) return Promise.resolve();
    return new Promise((resolve) => {
      const cancel = this.#clock.schedule(delayMs, resolve);
      this.#wake = () => {
        cancel();
        resolve();
      };
    });
  }

  interrupt(): void {
    this.#wake();
  }

  end(): void {
    this.#isEnded = true;
    this.#tellEnded();
    this.#wake();
  }
}
