import type { MessageInitShape } from "@bufbuild/protobuf";
import type { DescriptorEntry } from "../../core/limits/key.js";
import { hitsMax } from "../../core/limits/limit.js";
import { multiplierMax } from "../../core/limits/override.js";
import type { Override, OverrideSchema } from "../../gen/headgate/admin/v1/admin_pb.js";
import { systemClock } from "../../host/clock.js";
import type { AdminClient } from "../admin/admin-client.js";
import { momentAfter, momentAt } from "../input/moment.js";
import { readCount } from "../input/number-flags.js";
import { usageFailure } from "../terminal/command-failure.js";
import { eachPage } from "../terminal/pages.js";

/** Keys and limit of an override. */
export interface OverrideTarget {
  readonly domain: string;
  readonly entries: readonly DescriptorEntry[];
  readonly isPrefix: boolean;
  /** Empty: all limits. */
  readonly limitName: string;
}

/** Flags for the effect of an override. */
export interface EffectFlags {
  readonly hits?: string;
  readonly burst?: string;
  readonly times?: string;
}

/** Flags for the end of an override. */
export interface EndFlags {
  readonly for?: string;
  readonly until?: string;
}

type EffectInit = NonNullable<MessageInitShape<typeof OverrideSchema>["effect"]>;

/**
 * Reads the effect of an override: `--hits` with or without `--burst`, or `--times`.
 *
 * @throws CommandFailure
 */
export function readOverrideEffect({ hits, burst, times }: EffectFlags): EffectInit {
  if ((hits === undefined) === (times === undefined)) {
    throw usageFailure("set its effect: --hits 200, or --times 2x");
  }
  if (times !== undefined) {
    if (burst !== undefined) throw usageFailure("--burst needs --hits; --times includes the burst");
    return { case: "multiplier", value: readTimes(times) };
  }
  const amount = { hits: BigInt(readCount("--hits", hits ?? "", hitsMax)), burst: 0n };
  if (burst !== undefined) amount.burst = BigInt(readCount("--burst", burst, hitsMax));
  return { case: "amount", value: amount };
}

function readTimes(text: string): number {
  const found = /^(\d{1,9}(?:\.\d{1,6})?)x?$/.exec(text)?.[1];
  const times = found === undefined ? Number.NaN : Number(found);
  if (!(times > 0 && times <= multiplierMax)) {
    throw usageFailure(`--times must be above 0 and at most ${multiplierMax}, such as 2x or 0.5x`);
  }
  return times;
}

/**
 * Reads the end of an override: `--for`, `--until`, or none if both are absent.
 *
 * @throws CommandFailure
 */
export function readEnd({ for: span, until }: EndFlags): Pick<Partial<Override>, "expiresAt"> {
  if (span !== undefined && until !== undefined) throw usageFailure("use either --for or --until");
  if (span !== undefined) {
    return { expiresAt: momentAfter({ flag: "--for", text: span, clock: systemClock }) };
  }
  return until === undefined
    ? {}
    : { expiresAt: momentAt({ flag: "--until", text: until, clock: systemClock }) };
}

/** Returns the override with exactly this target, if there is one. */
export async function findOverride(
  { limits }: AdminClient,
  target: OverrideTarget,
): Promise<Override | undefined> {
  const { domain, entries } = target;
  const asked = { domain, beginsWith: [...entries] };
  let found: Override | undefined;
  await eachPage(
    (page) => limits.listOverrides({ ...asked, ...page }),
    ({ overrides }) => {
      found = overrides.find((override) => isFor(override, target));
      return found && "enough";
    },
  );
  return found;
}

function isFor(override: Override, target: OverrideTarget): boolean {
  const { domain, entries, isPrefix, limitName } = override;
  return (
    domain === target.domain &&
    isPrefix === target.isPrefix &&
    limitName === target.limitName &&
    entries.length === target.entries.length &&
    entries.every(({ key, value }, i) => {
      const other = target.entries[i];
      return key === other?.key && value === other.value;
    })
  );
}
