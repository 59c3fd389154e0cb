import { counterIgnoredRows } from "./counter-options.js";
import type { IgnoredOptionRow } from "./option.js";
import { redisIgnoredRows } from "./redis-options.js";
import { statsIgnoredRows } from "./stats-options.js";

/** All of them; no name is also an option. */
export const ignoredOptionRows: readonly IgnoredOptionRow[] = [
  ...redisIgnoredRows,
  ...counterIgnoredRows,
  ...statsIgnoredRows,
];

/** What to tell about the names that are set: one sentence a reason, and no value. */
export function ignoredNotices(
  env: Readonly<Record<string, string | undefined>>,
): readonly string[] {
  return ignoredOptionRows.flatMap(({ names, reason }) => {
    const found = names.filter((name) => env[name] !== undefined);
    if (found.length === 0) return [];
    const verb = found.length === 1 ? "is" : "are";
    return [`${found.join(", ")} ${verb} accepted and without effect here: ${reason}.`];
  });
}
