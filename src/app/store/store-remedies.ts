import type { ErrorCode } from "../../core/base/errors.js";

/** Remedies for failures of the store. The documentation shows the same texts. */
const storeRemedies: Readonly<Partial<Record<ErrorCode, string>>> = {
  STORE_TIMEOUT:
    "Check Redis's slow log and load, and the network. HEADGATE_STORE_BUDGET_MS " +
    "may be too small.",
  STORE_UNAVAILABLE:
    "Check that Redis runs and can be reached at REDIS_URL; for TLS, check REDIS_TLS.",
  STORE_OUT_OF_MEMORY:
    "Give Redis more memory (maxmemory), or allow it to evict keys (volatile-ttl).",
  STORE_NOT_SAVING:
    "Check Redis's log and disk (INFO persistence: rdb_last_bgsave_status, " +
    "aof_last_write_status), and free space. Limits need no disk: if nothing else " +
    "uses it, CONFIG SET stop-writes-on-bgsave-error no.",
  STORE_TOO_FEW_REPLICAS:
    "Restore its replicas (INFO replication: connected_slaves, lag), or lower " +
    "min-replicas-to-write.",
  STORE_TOO_MANY_CLIENTS:
    "Raise Redis's maxclients, or find who uses its connections (CLIENT LIST). " +
    "Each replica of Headgate needs a few.",
  STORE_READ_ONLY:
    "Set REDIS_URL to the primary. With REDIS_TYPE=sentinel Headgate finds it, and " +
    "this error passes.",
  STORE_LOADING: "Wait until Redis has loaded its data.",
  STORE_UNAUTHENTICATED:
    "Set REDIS_AUTH (or REDIS_AUTH_FILE) to Redis's password, or to user:password. " +
    "For sentinels, set REDIS_SENTINEL_AUTH.",
  STORE_ACCESS_DENIED:
    "Grant the user of REDIS_AUTH the commands and keys in docs/guides/redis.md (ACL SETUSER).",
  STORE_TLS_FAILED:
    "Compare REDIS_TLS, REDIS_TLS_CACERT and REDIS_TLS_CLIENT_CERT with Redis's " +
    "settings. Its certificate must contain the host name in REDIS_URL.",
  STORE_PROTOCOL: "Check that REDIS_URL and REDIS_TYPE match the server.",
};

/** Returns the remedy for an error, or undefined if none is known. */
export function remedyOf(code: ErrorCode): string | undefined {
  return storeRemedies[code];
}
