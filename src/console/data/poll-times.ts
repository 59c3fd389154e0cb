/** When in its step a poll is made: what a second has counted is known by then, in milliseconds. */
const offsetMs = 250;

/**
 * How long to wait for the next poll. All consoles ask at the same moments: one answer serves them
 * all, and the server is woken once.
 *
 * @returns from half a step to one and a half
 */
export function msToNextPoll(nowMs: number, everyMs: number): number {
  const ms = everyMs - ((nowMs - offsetMs) % everyMs);
  return ms < everyMs / 2 ? ms + everyMs : ms;
}
