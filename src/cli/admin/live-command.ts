import { systemClock } from "../../host/clock.js";
import { parseDurationMs } from "../../policy/text/duration.js";
import { usageFailure } from "../terminal/command-failure.js";
import { runLive } from "../terminal/live-screen.js";
import { truncateText } from "../terminal/text-width.js";
import { adminCallFailure } from "./admin-call-failure.js";
import type { AdminCommandParts } from "./admin-command.js";

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
    throw usageFailure(`--every must be a duration of at least ${everyMsMin}ms, such as 2s`);
  }
  return everyMs;
}

/** Whether somebody looks on: pictures are drawn again and again, instead of one table. */
export function isRedrawn(
  { printer, context }: AdminCommandParts,
  { once }: { readonly once?: true },
): boolean {
  return context.terminal.isScreen && printer.format === "table" && once !== true;
}

interface WatchedParts {
  readonly everyMs: number;
  readonly draw: () => Promise<readonly string[]>;
  /** Told each key but those that end it. Default: nothing. */
  readonly onKey?: (key: string) => void;
}

/** The lines that a picture has room for, beside so many others; at least one. */
export function roomBeside(otherLineCount: number, { context }: AdminCommandParts): number {
  return Math.max(1, (context.terminal.rows() ?? 24) - otherLineCount);
}

/**
 * Shows pictures until somebody ends it.
 *
 * @throws CommandFailure where the first one fails
 */
export function watch(
  { everyMs, draw, onKey = () => {} }: WatchedParts,
  call: AdminCommandParts,
): Promise<void> {
  const { terminal } = call.context;
  return runLive({ terminal, clock: systemClock, everyMs, draw: keepDrawing(draw, call), onKey });
}

/**
 * Pictures whose first failure ends it; later ones stand below the last picture until it works
 * again.
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
