/** A part that can be closed. */
interface Closing {
  close(): unknown;
}

/** Parts opened so far, closed in reverse order because later ones may use earlier ones. */
export class OpenStack {
  readonly #open: Closing[] = [];

  /** Closes it with the other parts. */
  keep<T extends Closing>(opened: T): T {
    this.#open.push(opened);
    return opened;
  }

  /** Closes one of them before its turn. */
  closeNow<T>(opened: { close(): Promise<T> }): Promise<T> {
    this.#open.splice(this.#open.indexOf(opened), 1);
    return opened.close();
  }

  /** Closes all remaining parts, even if one of them fails to close. @throws the first error */
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
 * Opens several parts, one after the other. If one of them cannot be opened, those before it are
 * closed again.
 */
export async function openAll<T>(open: (stack: OpenStack) => Promise<T>): Promise<T> {
  const stack = new OpenStack();
  try {
    return await open(stack);
  } catch (thrown) {
    // The reason why a part was not opened is more useful than why another did not close after it.
    await stack.close().catch(() => {});
    throw thrown;
  }
}
