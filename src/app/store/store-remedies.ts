import type { ErrorCode } from "../../core/base/errors.js";

/** What a person does next about a store that fails so; the documentation shows the same. */
const storeRemedies: Readonly<Partial<Record<ErrorCode, string>>> = {
  STORE_TIMEOUT:
    "Look at Redis's slow log and load, and at the network; HEADGATE_STORE_BUDGET_MS may be too " +
    "small.",
  STORE_UNAVAILABLE:
    "Look whether Redis runs and can be reached at REDIS_URL; with TLS, REDIS_TLS.",
  STORE_OUT_OF_MEMORY: "Give Redis more memory (maxmemory), or let it forget keys (volatile-ttl).",
  STORE_NOT_SAVING:
    "Look at Redis's log and disk (INFO persistence: rdb_last_bgsave_status, " +
    "aof_last_write_status), and make room. Limits need no disk: where nothing else does, " +
    "CONFIG SET stop-writes-on-bgsave-error no.",
  STORE_TOO_FEW_REPLICAS:
    "Bring its replicas back (INFO replication: connected_slaves, lag), or lower " +
    "min-replicas-to-write.",
  STORE_TOO_MANY_CLIENTS:
    "Raise Redis's maxclients, or find who holds its connections (CLIENT LIST); each replica of " +
    "Headgate needs a handful.",
  STORE_READ_ONLY:
    "Name the primary in REDIS_URL; with REDIS_TYPE=sentinel it is found, and this passes.",
  STORE_LOADING: "Wait: Redis answers when it has loaded its data.",
  STORE_UNAUTHENTICATED:
    "Set REDIS_AUTH (or REDIS_AUTH_FILE) to Redis's password, or to user:password; for sentinels " +
    "REDIS_SENTINEL_AUTH.",
  STORE_ACCESS_DENIED:
    "Let the user of REDIS_AUTH use the commands and keys of docs/guides/redis.md (ACL SETUSER).",
  STORE_TLS_FAILED:
    "Compare REDIS_TLS, REDIS_TLS_CACERT and REDIS_TLS_CLIENT_CERT with what Redis has; the host " +
    "name in REDIS_URL must be in its certificate.",
  STORE_PROTOCOL: "Look whether REDIS_URL and REDIS_TYPE say what the server is.",
};

/** What to do next, or nothing where nothing is known. */
export function remedyOf(code: ErrorCode): string | undefined {
  return storeRemedies[code];
}
