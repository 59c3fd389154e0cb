import type { Clock } from "../core/base/clock.js";
/** Ends what was started, the newest first, whatever happens on the way. */
export class DemoScope {
  #closers: (() => unknown)[] = [];
  #isClosed = false;

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Takes over what is to be ended; when the end has come already, it is ended at once. */
  async add(close: () => unknown): Promise<void> {
    if (this.#isClosed) await close();
    else this.#closers.push(close);
  }

  /** Ends everything; the first failure is thrown when all the rest has ended. */
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

/** Acts once a second until the scope is closed. @param act told how many seconds have passed */
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
