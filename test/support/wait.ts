/** How `waitFor` looks. */
export interface WaitOptions {
  /** The condition must hold within this time, or the test fails. Default 20 s. */
  readonly withinMs?: number;
  /** Time that does not count, in milliseconds since anywhen. Default: none. */
  readonly withheldMs?: () => number;
  /**
   * Time between two looks. Default: 10 ms at first, then a twentieth of the wait, to 100 ms; and
   * twice what a look takes, since a page of metrics costs more than what is waited for.
   */
  readonly everyMs?: number;
}

/**
 * Looks until the answer is neither undefined nor false, and answers it. An error thrown by a look
 * is a "not yet"; the last one is told when time is over.
 *
 * @param what the condition in words, for the failure's text
 */
export async function waitFor<T>(
  what: string,
  look: () => T | Promise<T>,
  { withinMs = 20_000, withheldMs = () => 0, everyMs }: WaitOptions = {},
): Promise<Exclude<T, undefined | false>> {
  const ownMs = (): number => performance.now() - withheldMs();
  const endMs = ownMs() + withinMs;
  const startMs = performance.now();
  let lastError: unknown;
  for (;;) {
    const lookMs = performance.now();
    try {
      const found = await look();
      if (found !== undefined && found !== false) return found as Exclude<T, undefined | false>;
    } catch (thrown) {
      lastError = thrown;
    }
    if (ownMs() >= endMs) {
      throw new Error(`not within ${withinMs} ms: ${what}`, { cause: lastError });
    }
    const nowMs = performance.now();
    const usualMs = Math.min(100, Math.max(10, (nowMs - startMs) / 20, 2 * (nowMs - lookMs)));
    await new Promise((resolve) => setTimeout(resolve, everyMs ?? usualMs));
  }
}

/** Rejects when the promise takes longer than it may. */
export async function within<T>(what: string, limitMs: number, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`not within ${limitMs} ms: ${what}`)), limitMs);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
