import { parseDurationMs } from "../policy/duration.js";
import { type AdminCall, usageFailure } from "./admin-command.js";
import { commandFailure } from "./admin-errors.js";
import { cutText } from "./text-width.js";

/** Pictures do not come faster, in milliseconds. */
const everyMsMin = 100;

/**
 * How often a picture is drawn again, in milliseconds.
 *
 * @throws CommandFailure for what is no duration, or too short
 */
export function readEvery(text: string): number {
  const everyMs = parseDurationMs(text);
  if (everyMs === undefined || everyMs < everyMsMin) {
    throw usageFailure(`--every must be a duration from ${everyMsMin}ms on, such as 2s`);
  }
  return everyMs;
}

/**
 * Pictures whose first failure ends it; later ones stand below the last picture until it works
 * again.
 */
export function keepDrawing(
  draw: () => Promise<readonly string[]>,
  { client, printer }: AdminCall,
): () => Promise<readonly string[]> {
  let last: readonly string[] | undefined;
  return async () => {
    try {
      last = await draw();
      return last;
    } catch (thrown) {
      const failure = commandFailure(thrown, client);
      if (last === undefined) throw failure;
      const { style, columnsMax } = printer.drawing();
      return [...last.slice(0, -1), style.bad(cutText(failure.message, columnsMax))];
    }
  };
}
