import { assertNever } from "../../core/base/errors.js";
import {
  type ClusterTarget,
  type ParsedTarget,
  parseClusterTarget,
  parseRedisTarget,
  parseSentinelTarget,
  type RedisTarget,
  type SentinelTarget,
  type SentinelTargetText,
} from "../../store/redis/target.js";
import type { OptionValues } from "../options/options.js";
import type { RedisType } from "../options/redis-options.js";

/** One Redis, as configured. */
export type RedisChoice = RedisPlace & {
  /** Maximum time of a call. Absent: only its deadline counts. */
  readonly timeoutMs?: number;
};

type RedisPlace =
  | { readonly kind: "single"; readonly target: RedisTarget }
  | { readonly kind: "cluster"; readonly target: ClusterTarget }
  | { readonly kind: "sentinel"; readonly target: SentinelTarget };

/** Credentials and trusted authorities for connections to Redis, as configured. */
export interface RedisTlsChoice {
  /** Authorities, in place of Node's built-in ones. */
  readonly authorityPath?: string;
  /** The client certificate of this process and its key. */
  readonly pair?: { readonly certificatePath: string; readonly keyPath: string };
  /** Whether a trusted certificate may be for another host. */
  readonly skipsHostName: boolean;
}

/** The store of limits. */
export type StoreChoice =
  | { readonly kind: "memory" }
  | {
      readonly kind: "redis";
      readonly main: RedisChoice;
      /** The second Redis, for limits whose period is one second. */
      readonly perSecond?: RedisChoice;
      /** For all connections over TLS. */
      readonly tls: RedisTlsChoice;
    };

/** A choice, or the reason why there is none. The message contains no values of options. */
type Chosen<T> = T | { readonly kind: "problem"; readonly message: string };

/** Combines the options of the store. */
export function chooseStore(values: OptionValues): Chosen<StoreChoice> {
  const { backendType, redisUrl, redisPerSecond } = values;
  if (backendType === "memory") return { kind: "memory" };
  if (redisUrl === undefined) {
    if (backendType === "redis") {
      return problem("BACKEND_TYPE is redis, but REDIS_URL is not set; set it to host:port");
    }
    if (redisPerSecond) return problem("REDIS_PERSECOND is true, but REDIS_URL is not set");
    return { kind: "memory" };
  }
  const tls = chooseRedisTls(values);
  if (tls.kind === "problem") return tls;
  const main = chooseRedis(values, {
    name: "REDIS_URL",
    prefix: "redis",
    url: redisUrl,
  });
  if (main.kind === "problem") return main;
  const choice = { kind: "redis", main, tls: tls.tls } as const;
  if (!redisPerSecond) return checkPrefix(choice, values);
  const { redisPerSecondUrl } = values;
  if (redisPerSecondUrl === undefined) {
    return problem("REDIS_PERSECOND is true, but REDIS_PERSECOND_URL is not set");
  }
  const perSecond = chooseRedis(values, {
    name: "REDIS_PERSECOND_URL",
    prefix: "redisPerSecond",
    url: redisPerSecondUrl,
  });
  if (perSecond.kind === "problem") return perSecond;
  return checkPrefix({ ...choice, perSecond }, values);
}

/** Requires both certificate and key of the client, or neither. */
function chooseRedisTls(values: OptionValues): Chosen<{ kind: "tls"; tls: RedisTlsChoice }> {
  const { redisTlsCaCert, redisTlsClientCert, redisTlsClientKey, redisTlsSkipHostName } = values;
  if ((redisTlsClientCert === undefined) !== (redisTlsClientKey === undefined)) {
    return problem("REDIS_TLS_CLIENT_CERT and REDIS_TLS_CLIENT_KEY need each other; set both");
  }
  const tls: RedisTlsChoice = {
    ...(redisTlsCaCert === undefined ? {} : { authorityPath: redisTlsCaCert }),
    ...(redisTlsClientCert === undefined || redisTlsClientKey === undefined
      ? {}
      : { pair: { certificatePath: redisTlsClientCert, keyPath: redisTlsClientKey } }),
    skipsHostName: redisTlsSkipHostName,
  };
  return { kind: "tls", tls };
}

/** Reports whether any connection of this choice uses TLS. */
export function speaksTls(choice: StoreChoice): boolean {
  if (choice.kind !== "redis") return false;
  const { main, perSecond } = choice;
  return [main, ...(perSecond === undefined ? [] : [perSecond])].some(isOverTls);
}

/** Reports whether connections to a Redis use TLS. */
export function isOverTls({ kind, target }: RedisChoice): boolean {
  if (kind === "single") return target.address.kind === "tcp" && target.address.isTls;
  return target.isTls;
}

/** One of the two, by the prefix of its settings and options. */
interface RedisSide {
  /** Place that problems name. */
  readonly name: string;
  readonly prefix: "redis" | "redisPerSecond";
  readonly url: string;
}

function chooseRedis(values: OptionValues, { name, prefix, url }: RedisSide): Chosen<RedisChoice> {
  const auth = values[`${prefix}Auth`];
  const sentinelAuth = values[`${prefix}SentinelAuth`];
  const timeoutMs = values[`${prefix}TimeoutMs`];
  const socketType = values[`${prefix}Tls`] ? "tls" : values[`${prefix}SocketType`];
  const place = choosePlace(values[`${prefix}Type`], {
    url,
    ...(socketType === "auto" ? {} : { socketType }),
    ...(auth === undefined ? {} : { auth }),
    ...(sentinelAuth === undefined ? {} : { sentinelAuth }),
  });
  if (place.kind === "problem") return problem(`${name}: ${place.message}`);
  return timeoutMs === 0 ? place : { ...place, timeoutMs };
}

/**
 * Chooses the Redis of a region. It has the kind of REDIS_URL, and uses REDIS_AUTH if its own URL
 * has no password.
 *
 * @param place.name that problems name
 */
export function chooseRegionRedis(
  values: OptionValues,
  { name, url }: { readonly name: string; readonly url: string },
): Chosen<RedisChoice> {
  const side = { name, prefix: "redis", url } as const;
  const own = chooseRedis({ ...values, redisAuth: undefined }, side);
  const hasOwnLogin = own.kind !== "problem" && own.target.password !== undefined;
  return hasOwnLogin ? own : chooseRedis(values, side);
}

function choosePlace(type: RedisType, text: SentinelTargetText): Chosen<RedisPlace> {
  switch (type) {
    case "single":
      return placed(type, parseRedisTarget(text));
    case "cluster":
      return placed(type, parseClusterTarget(text));
    case "sentinel":
      return placed(type, parseSentinelTarget(text));
    default:
      return assertNever(type);
  }
}

function placed<Kind, Target>(
  kind: Kind,
  parsed: ParsedTarget<Target>,
): Chosen<{ readonly kind: Kind; readonly target: Target }> {
  return parsed.kind === "target" ? { kind, target: parsed.target } : parsed;
}

/** Refuses braces in the prefix: in a cluster, the text in braces determines the node of a key. */
function checkPrefix(
  choice: Extract<StoreChoice, { kind: "redis" }>,
  { keyPrefix }: OptionValues,
): Chosen<StoreChoice> {
  const isTagged = choice.main.kind === "cluster" || choice.perSecond?.kind === "cluster";
  if (!isTagged || !/[{}]/.test(keyPrefix)) return choice;
  return problem(
    "CACHE_KEY_PREFIX must not contain braces in a cluster, because they are hash tags",
  );
}

function problem(message: string): { readonly kind: "problem"; readonly message: string } {
  return { kind: "problem", message };
}
