/** What can be closed. */
interface Closing {
  close(): unknown;
}

/** What was opened so far. What was opened last, which may use what was before, is closed first. */
export class OpenStack {
  readonly #open: Closing[] = [];

  /** Closes it with the others. */
  keep<T extends Closing>(opened: T): T {
    this.#open.push(opened);
    return opened;
  }

  /** Closes one of them before its turn. */
  closeNow<T>(opened: { close(): Promise<T> }): Promise<T> {
    this.#open.splice(this.#open.indexOf(opened), 1);
    return opened.close();
  }

  /** Closes all that is left, also where one of them fails to. @throws what the first threw */
  async close(): Promise<void> {
    const failures: unknown[] = [];
    for (const opened of this.#open.splice(0).reverse()) {
      try {
        await opened.close();
      } catch (thrown) {
        failures.push(thrown);
      }
    }
    if (failures.length > 0) throw failures[0];
  }
}

/**
 * Opens several things, one after the other; when one of them cannot be opened, those before it are
 * closed again.
 */
export async function openAll<T>(open: (stack: OpenStack) => Promise<T>): Promise<T> {
  const stack = new OpenStack();
  try {
    return await open(stack);
  } catch (thrown) {
    // Why it was not opened says more than why something did not close after it.
    await stack.close().catch(() => {});
    throw thrown;
  }
}
