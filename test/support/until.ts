/** Waits until `condition` holds, looking every few milliseconds; throws at the deadline. */
export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
  withinMs = 10_000,
): Promise<void> {
  const endMs = performance.now() + withinMs;
  while (!(await condition())) {
    if (performance.now() > endMs) throw new Error(`not within ${withinMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
