import type { Clock } from "../core/base/clock.js";
/** Closes everything that was started, newest first, even if a step fails. */
export class DemoScope {
  #closers: (() => unknown)[] = [];
  #isClosed = false;

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Adds a function that closes something. Calls it at once if the scope is already closed. */
  async add(close: () => unknown): Promise<void> {
    if (this.#isClosed) await close();
    else this.#closers.push(close);
  }

  /** Closes everything. Afterwards, throws the first failure. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const failures: unknown[] = [];
    for (const close of this.#closers.splice(0).reverse()) {
      try {
        await close();
      } catch (thrown) {
        failures.push(thrown);
      }
    }
    if (failures.length > 0) throw failures[0];
  }
}

/** Acts once per second until the scope is closed. @param act takes the number of seconds passed */
export function everySecond(
  clock: Clock,
  scope: Pick<DemoScope, "isClosed">,
  act: (seconds: number) => void,
): void {
  const tick = (seconds: number): void => {
    clock.schedule(1_000, () => {
      if (scope.isClosed) return;
      act(seconds);
      tick(seconds + 1);
    });
  };
  tick(1);
}
