import type { IgnoredOptionRow } from "./option.js";
import { redisIgnoredRows } from "./redis-options.js";
import { statsIgnoredRows } from "./stats-options.js";

/** Settings of envoyproxy/ratelimit for its counters, and why they have no effect here. */
const counterIgnoredRows: readonly IgnoredOptionRow[] = [
  {
    names: ["EXPIRATION_JITTER_MAX_SECONDS"],
    reason: "a key expires when its limit is unused again, so keys never expire all at once",
  },
  {
    names: ["STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT"],
    reason:
      "denied hits are not charged; HEADGATE_CHARGE_DENIED charges them, up to one more burst",
  },
  {
    names: [
      "MEMCACHE_HOST_PORT",
      "MEMCACHE_SRV",
      "MEMCACHE_SRV_REFRESH",
      "MEMCACHE_MAX_IDLE_CONNS",
      "MEMCACHE_TLS",
      "MEMCACHE_TLS_CLIENT_CERT",
      "MEMCACHE_TLS_CLIENT_KEY",
      "MEMCACHE_TLS_CACERT",
      "MEMCACHE_TLS_SKIP_HOSTNAME_VERIFICATION",
    ],
    reason:
      "memcached cannot decide a limit in one step, so limits are kept in Redis; BACKEND_TYPE " +
      "`memcache` ends the start",
  },
];

/** All of them. No name is also an option. */
export const ignoredOptionRows: readonly IgnoredOptionRow[] = [
  ...redisIgnoredRows,
  ...counterIgnoredRows,
  ...statsIgnoredRows,
];

/** Returns notices about those that are set: one sentence for each reason, without values. */
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
