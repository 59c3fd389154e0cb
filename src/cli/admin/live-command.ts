import { systemClock } from "../../host/clock.js";
import { parseDurationMs } from "../../policy/text/duration.js";
import { usageFailure } from "../terminal/command-failure.js";
import { runLive } from "../terminal/live-screen.js";
import { truncateText } from "../terminal/text-width.js";
import { adminCallFailure } from "./admin-call-failure.js";
import type { AdminCommandParts } from "./admin-command.js";

/** Minimum time between two pictures, in milliseconds. */
const everyMsMin = 100;

/**
 * Reads the time between two pictures, in milliseconds.
 *
 * @throws CommandFailure for an invalid or too short duration
 */
export function readEvery(text: string): number {
  const everyMs = parseDurationMs(text);
  if (everyMs === undefined || everyMs < everyMsMin) {
    throw usageFailure(`--every must be a duration of at least ${everyMsMin}ms, such as 2s`);
  }
  return everyMs;
}

/** Reports whether pictures are redrawn on a screen, instead of printing one table. */
export function isRedrawn(
  { printer, context }: AdminCommandParts,
  { once }: { readonly once?: true },
): boolean {
  return context.terminal.isScreen && printer.format === "table" && once !== true;
}

interface WatchedParts {
  readonly everyMs: number;
  readonly draw: () => Promise<readonly string[]>;
  /** Called with each key except those that end the display. Default: nothing. */
  readonly onKey?: (key: string) => void;
}

/** Returns the number of lines left for a picture beside others; at least one. */
export function roomBeside(otherLineCount: number, { context }: AdminCommandParts): number {
  return Math.max(1, (context.terminal.rows() ?? 24) - otherLineCount);
}

/**
 * Shows pictures until the user ends the display.
 *
 * @throws CommandFailure if the first picture fails
 */
export function watch(
  { everyMs, draw, onKey = () => {} }: WatchedParts,
  call: AdminCommandParts,
): Promise<void> {
  const { terminal } = call.context;
  return runLive({ terminal, clock: systemClock, everyMs, draw: keepDrawing(draw, call), onKey });
}

/**
 * Draws pictures. If the first one fails, the display ends. Later failures are shown below the last
 * picture until drawing works again.
 */
function keepDrawing(
  draw: () => Promise<readonly string[]>,
  { client, printer }: AdminCommandParts,
): () => Promise<readonly string[]> {
  let last: readonly string[] | undefined;
  return async () => {
    try {
      last = await draw();
      return last;
    } catch (thrown) {
      const failure = adminCallFailure(thrown, client);
      if (last === undefined) throw failure;
      const { style, columnsMax } = printer.drawing();
      return [...last.slice(0, -1), style.bad(truncateText(failure.message, columnsMax))];
    }
  };
}
