import type { Clock } from "../../core/base/clock.js";
import type { Terminal } from "./terminal.js";

/** A screen that is redrawn periodically. */
interface LiveParts {
  readonly terminal: Terminal;
  readonly clock: Clock;
  /** Time between two pictures, in milliseconds. */
  readonly everyMs: number;
  /** Returns the lines of the next picture, none wider than the terminal. */
  readonly draw: () => Promise<readonly string[]>;
  /** Called with each key except those that end the display. Changes are drawn at once. */
  readonly onKey: (key: string) => void;
}

// Source: xterm, "XTerm Control Sequences": alternate screen, cursor, erase.
const enter = "\u001b[?1049h\u001b[?25l";
const leave = "\u001b[?25h\u001b[?1049l";
const home = "\u001b[H";
const eraseLine = "\u001b[K";
const eraseBelow = "\u001b[J";

/** q, Ctrl-C, Ctrl-D and Escape. In raw mode, the terminal does not convert them to signals. */
const endKeys: ReadonlySet<string> = new Set(["q", "Q", "\u0003", "\u0004", "\u001b"]);

/**
 * Shows pictures until the user ends the display, and restores the terminal.
 *
 * @throws the errors of `draw`
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

/** Overwrites the last picture, to avoid flicker. A newline at the end would scroll. */
function picture(lines: readonly string[], rows: number): string {
  const shown = lines.slice(0, rows).map((line) => line + eraseLine);
  return home + shown.join("\r\n") + eraseBelow;
}

/** A wait that a key interrupts. */
class Interruptible {
  /** Resolves when the display ends. */
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
