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
  /** The longest that a call may take; absent: its deadline alone counts. */
  readonly timeoutMs?: number;
};

type RedisPlace =
  | { readonly kind: "single"; readonly target: RedisTarget }
  | { readonly kind: "cluster"; readonly target: ClusterTarget }
  | { readonly kind: "sentinel"; readonly target: SentinelTarget };

/** What connections to Redis prove themselves with, and whom they trust, as configured. */
export interface RedisTlsChoice {
  /** Authorities, in place of those that Node knows. */
  readonly authorityPath?: string;
  /** Our own certificate and its key. */
  readonly pair?: { readonly certificatePath: string; readonly keyPath: string };
  /** Whether a trusted certificate may be for another host. */
  readonly skipsHostName: boolean;
}

/** Where limits are kept. */
export type StoreChoice =
  | { readonly kind: "memory" }
  | {
      readonly kind: "redis";
      readonly main: RedisChoice;
      /** The second one, for limits whose period is one second. */
      readonly perSecond?: RedisChoice;
      /** For all connections that are made over TLS. */
      readonly tls: RedisTlsChoice;
    };

/** A choice, or why the options make none; the message holds no values of theirs. */
type Chosen<T> = T | { readonly kind: "problem"; readonly message: string };

/** What the options of the store say together. */
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

/** The pair of one's own is whole, or there is none. */
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

/** Whether any connection of this choice is made over TLS. */
export function speaksTls(choice: StoreChoice): boolean {
  if (choice.kind !== "redis") return false;
  const { main, perSecond } = choice;
  return [main, ...(perSecond === undefined ? [] : [perSecond])].some(isOverTls);
}

/** Whether connections to a Redis are made over TLS. */
export function isOverTls({ kind, target }: RedisChoice): boolean {
  if (kind === "single") return target.address.kind === "tcp" && target.address.isTls;
  return target.isTls;
}

/** One of both, by what its settings and its options begin with. */
interface RedisSide {
  /** Where problems are said to be. */
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
 * The Redis of a region: of the kind of REDIS_URL, and with REDIS_AUTH where its own URL has no
 * password.
 *
 * @param place.name where problems are said to be
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

/** In a cluster, what stands in braces says where a key lives. */
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
