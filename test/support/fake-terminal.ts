import type { Terminal } from "../../src/cli/terminal/terminal.js";

/** What a fake terminal is. */
export interface FakeTerminalOptions {
  readonly columns?: number;
  readonly rows?: number;
  /** What is typed when somebody is asked; absent: nobody can be asked. */
  readonly answers?: readonly string[];
}

/** A screen that remembers what was written, and a keyboard that a test types on. */
export class FakeTerminal implements Terminal {
  readonly isScreen = true;
  readonly canAsk: boolean;
  /** All that was written, control sequences included. */
  written = "";
  readonly questions: string[] = [];
  readonly #options: FakeTerminalOptions;
  readonly #answers: string[];
  readonly #keyListeners = new Set<(key: string) => void>();
  readonly #endListeners = new Set<() => void>();

  constructor(options: FakeTerminalOptions = {}) {
    this.#options = options;
    this.canAsk = options.answers !== undefined;
    this.#answers = [...(options.answers ?? [])];
  }

  /** Whether somebody still listens to keys or signals. */
  get isHeld(): boolean {
    return this.#keyListeners.size + this.#endListeners.size > 0;
  }

  columns(): number {
    return this.#options.columns ?? 80;
  }

  rows(): number {
    return this.#options.rows ?? 24;
  }

  write(text: string): void {
    this.written += text;
  }

  async ask(question: string): Promise<string> {
    this.questions.push(question);
    return this.#answers.shift() ?? "";
  }

  onKey(listener: (key: string) => void): () => void {
    this.#keyListeners.add(listener);
    return () => this.#keyListeners.delete(listener);
  }

  onEnd(listener: () => void): () => void {
    this.#endListeners.add(listener);
    return () => this.#endListeners.delete(listener);
  }

  /** Types a key. */
  type(key: string): void {
    for (const listener of [...this.#keyListeners]) listener(key);
  }

  /** As Ctrl-C does where keys are not listened to. */
  interrupt(): void {
    for (const listener of [...this.#endListeners]) listener();
  }
}
