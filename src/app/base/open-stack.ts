/** What can be closed. */
export interface Closing {
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

  async close(): Promise<void> {
    for (const opened of this.#open.splice(0).reverse()) await opened.close();
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
    await stack.close();
    throw thrown;
  }
}
