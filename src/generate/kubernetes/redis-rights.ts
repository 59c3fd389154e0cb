/** What every key of Headgate's begins with. Default of CACHE_KEY_PREFIX. */
const keyPattern = "headgate:*";

/** The commands that Headgate sends, and those that its scripts run; what it needs and no more. */
const rights =
  "+evalsha +script|load +time +mget +set +del +pexpire +zadd +zcard +zrem +zrange " +
  "+zrangebyscore +zremrangebyscore +hset +hget +hgetall +hdel +hlen +hincrby +lpush +ltrim " +
  "+lrange +ping +client|setname";

/** What reading a key of others' needs beyond that. */
const signalRights = "+type +get +strlen +llen";

/** Stands where a password's digest belongs. Redis refuses it: nobody gets a known password. */
const digestPlaceholder = "SHA256_OF_ITS_PASSWORD";

/**
 * The command that makes a Redis user with least privilege. In a cluster it also needs
 * `+cluster|slots +asking`, behind sentinels `+role`.
 *
 * @param signalKeys keys that the policy's signals are read from
 */
export function redisUserCommand(user: string, signalKeys: readonly string[]): string {
  const keys = [keyPattern, ...signalKeys.map(escapePattern)].map((key) => `~${key}`);
  const more = signalKeys.length === 0 ? "" : ` ${signalRights}`;
  return `ACL SETUSER ${user} on #${digestPlaceholder} ${keys.join(" ")} -@all ${rights}${more}`;
}

/**
 * A key as a pattern that means it alone, but where that cannot be written: a pattern holds no
 * spaces, and redis-cli takes quotes for its own; there any one character will do.
 *
 * Source: Redis, "KEYS" (supported patterns) and ACL SETUSER.
 */
function escapePattern(key: string): string {
  return key.replaceAll(/[*?[\]\\^]/g, "\\$&").replaceAll(/[\s"']/g, "?");
}
