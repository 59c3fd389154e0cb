/** Delay of a poll within its step, in milliseconds. By then, the last second has been counted. */
const offsetMs = 250;

/**
 * Returns the time until the next poll. All consoles poll at the same times, so that one answer
 * serves all of them and the server wakes up once.
 *
 * @returns from half a step to one and a half
 */
export function msToNextPoll(nowMs: number, everyMs: number): number {
  const ms = everyMs - ((nowMs - offsetMs) % everyMs);
  return ms < everyMs / 2 ? ms + everyMs : ms;
}
