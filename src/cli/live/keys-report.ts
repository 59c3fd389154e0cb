import { many } from "../../core/base/many.js";
import type {
  GetKeyResponse,
  KeyState,
  Limit,
  ListOverridesResponse,
  Override,
} from "../../gen/headgate/admin/v1/admin_pb.js";
import type { Plain } from "../../rpc/codec/plain-message.js";
import { drawBar } from "../terminal/bar.js";
import type { Drawing } from "../terminal/drawing.js";
import {
  countText,
  entriesText,
  periodText,
  safeText,
  timeText,
  waitText,
} from "../terminal/quantity.js";
import { truncateText, wrapText } from "../terminal/text-width.js";

const barColumns = 20;

/** Draws the state of a key as text: its limits one below the other. */
export function drawKey({ states }: GetKeyResponse, drawing: Drawing): readonly string[] {
  return states.flatMap((state) => drawKeyState(state, drawing));
}

/** Draws one limit: its definition, how much of it is used, and until when. */
function drawKeyState(state: KeyState, drawing: Drawing): readonly string[] {
  const { style, columnsMax } = drawing;
  const { ruleLabel, limit, override, usedHits, key } = state;
  const name = limit === undefined || limit.name === "" ? "" : ` ${safeText(limit.name)}`;
  const title = `${safeText(ruleLabel)}${name}`;
  const burst = Number(limit?.burst ?? 0n);
  const isFull = state.remainingHits === 0n;
  const bar = drawBar(burst === 0 ? 1 : usedHits / burst, barColumns);
  const lines = [
    `${style.bold(title)}  ${limit === undefined ? "" : limitText(limit)}`,
    `  ${isFull ? style.bad(bar) : style.good(bar)}  ${usedText(usedHits)} of ` +
      `${countText(burst)} used, ${countText(state.remainingHits)} left`,
    `  ${whenText(state)}`,
  ];
  if (override !== undefined) {
    lines.push(...indented(`override ${overrideText(override)}`, columnsMax));
  }
  if (key !== "")
    lines.push(`  ${style.dim(truncateText(`key ${safeText(key)}`, columnsMax - 2))}`);
  return lines;
}

function indented(text: string, columnsMax: number): readonly string[] {
  return wrapText(text, columnsMax - 2).map((line) => `  ${line}`);
}

/** Returns used hits, with decimals if there are any: a leaky bucket drains continuously. */
export function usedText(hits: number): string {
  return countText(Math.round(hits * 10) / 10);
}

/** Returns when another hit fits, and when the limit is completely unused again. */
export function whenText(
  { retryAfter, fullAfter, usedHits }: Plain<KeyState>,
  what = "one more",
): string {
  const words: string[] = [];
  if (retryAfter === undefined) words.push(`${what} never fits`);
  else if (retryAfter.seconds === 0n && retryAfter.nanos === 0) words.push(`${what} fits now`);
  else words.push(`${what} fits in ${waitText(retryAfter)}`);
  if (usedHits > 0) {
    words.push(fullAfter === undefined ? "it never empties" : `empty in ${waitText(fullAfter)}`);
  }
  return words.join("; ");
}

/** `vip: times 2 until 2026-11-27T12:00:00Z, by ann: launch week`. */
export function overrideText(override: Plain<Override>): string {
  const { id, author, reason } = override;
  const by = author === "" ? "" : `, by ${safeText(author)}`;
  const why = reason === "" ? "" : `: ${safeText(reason)}`;
  return `${safeText(id)}: ${effectText(override)} ${untilText(override)}${by}${why}`;
}

/** Returns the effect of an override: `times 2`, `200 hits, burst 20`, `frozen`. */
export function effectText({ effect }: Pick<Plain<Override>, "effect">): string {
  switch (effect.case) {
    case "amount": {
      const { hits, burst } = effect.value;
      const other = burst === 0n || burst === hits ? "" : `, burst ${countText(burst)}`;
      return `${countText(hits)} ${hits === 1n ? "hit" : "hits"}${other}`;
    }
    case "multiplier":
      return `times ${effect.value}`;
    case "isFrozen":
      return "frozen";
    case undefined:
      return "nothing";
  }
}

/** Returns until when an override applies. */
export function untilText({ expiresAt }: Pick<Plain<Override>, "expiresAt">): string {
  return expiresAt === undefined ? "until it is removed" : `until ${timeText(expiresAt)}`;
}

/** Returns the keys of an override: `shop plan=free, user=ann and what is below`. */
export function overrideSubject(override: Override): string {
  const { domain, entries, isPrefix, limitName } = override;
  const below = isPrefix ? ", and all below" : "";
  const limit = limitName === "" ? "" : ` (${safeText(limitName)})`;
  return `${safeText(domain)} ${entriesText(entries)}${below}${limit}`;
}

/** Draws overrides as text. */
export function drawOverrides(
  { overrides }: ListOverridesResponse,
  { style, columnsMax }: Drawing,
): readonly string[] {
  if (overrides.length === 0) return ["There are no overrides."];
  const list = overrides.flatMap((override) => {
    const { id, author, reason, version } = override;
    const why = `version ${version}, by ${safeText(author)}: ${safeText(reason)}`;
    const line = `${effectText(override)} ${untilText(override)}; ${why}`;
    const subject = truncateText(overrideSubject(override), columnsMax);
    return [
      style.bold(subject),
      ...indented(line, columnsMax),
      `  ${style.dim(`id ${safeText(id)}`)}`,
    ];
  });
  return [...list, style.dim(many(overrides.length, "override"))];
}

/** Returns a limit in one line: `5 per 10s, burst 20, delay 200ms, global: 1/2 here, shadow`. */
export function limitText({
  hits,
  period,
  burst,
  role,
  algorithm,
  delayMax,
  regionCount,
}: Plain<Limit>): string {
  const words = [`${countText(hits)} per ${periodText(period)}`];
  if (burst !== hits && algorithm !== "fixed_window") words.push(`burst ${countText(burst)}`);
  if (algorithm === "fixed_window") words.push("windows");
  if (delayMax !== undefined) words.push(`delay ${waitText(delayMax)}`);
  if (regionCount === 1) words.push("global");
  if (regionCount > 1) words.push(`global: 1/${regionCount} here`);
  if (role !== "" && role !== "enforce") words.push(role);
  return words.join(", ");
}
