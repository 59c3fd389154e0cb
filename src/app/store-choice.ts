import {
  type ClusterTarget,
  parseClusterTarget,
  parseRedisTarget,
  type RedisTarget,
  type RedisTargetText,
} from "../store/redis/target.js";
import type { OptionValues } from "./options.js";
import type { RedisSocketType, RedisType } from "./redis-options.js";

/** One Redis, as configured. */
export type RedisChoice =
  | { readonly kind: "single"; readonly target: RedisTarget }
  | { readonly kind: "cluster"; readonly target: ClusterTarget };

/** Where limits are kept. */
export type StoreChoice =
  | { readonly kind: "memory" }
  | {
      readonly kind: "redis";
      readonly main: RedisChoice;
      /** The second one, for limits whose period is one second. */
      readonly perSecond?: RedisChoice;
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
  const main = chooseRedis("REDIS", {
    type: values.redisType,
    url: redisUrl,
    auth: values.redisAuth,
    socketType: values.redisTls ? "tls" : values.redisSocketType,
  });
  if (main.kind === "problem") return main;
  if (!redisPerSecond) return checkPrefix({ kind: "redis", main }, values);
  const { redisPerSecondUrl } = values;
  if (redisPerSecondUrl === undefined) {
    return problem("REDIS_PERSECOND is true, but REDIS_PERSECOND_URL is not set");
  }
  const perSecond = chooseRedis("REDIS_PERSECOND", {
    type: values.redisPerSecondType,
    url: redisPerSecondUrl,
    auth: values.redisPerSecondAuth,
    socketType: values.redisPerSecondTls ? "tls" : values.redisPerSecondSocketType,
  });
  if (perSecond.kind === "problem") return perSecond;
  return checkPrefix({ kind: "redis", main, perSecond }, values);
}

interface RedisText {
  readonly type: RedisType;
  readonly url: string;
  readonly auth: string | undefined;
  readonly socketType: RedisSocketType;
}

function chooseRedis(name: string, { type, url, auth, socketType }: RedisText) {
  const text: RedisTargetText = {
    url,
    ...(socketType === "auto" ? {} : { socketType }),
    ...(auth === undefined ? {} : { auth }),
  };
  return type === "cluster" ? chooseCluster(name, text) : chooseSingle(name, text);
}

function chooseSingle(name: string, text: RedisTargetText): Chosen<RedisChoice> {
  const parsed = parseRedisTarget(text);
  if (parsed.kind === "target") return { kind: "single", target: parsed.target };
  return problem(`${name}_URL: ${parsed.message}`);
}

function chooseCluster(name: string, text: RedisTargetText): Chosen<RedisChoice> {
  const parsed = parseClusterTarget(text);
  if (parsed.kind === "target") return { kind: "cluster", target: parsed.target };
  return problem(`${name}_URL: ${parsed.message}`);
}

/** In a cluster, what stands in braces says where a key lives. */
function checkPrefix(
  choice: Extract<StoreChoice, { kind: "redis" }>,
  { keyPrefix }: OptionValues,
): Chosen<StoreChoice> {
  const isTagged = choice.main.kind === "cluster" || choice.perSecond?.kind === "cluster";
  if (!isTagged || !/[{}]/.test(keyPrefix)) return choice;
  return problem("CACHE_KEY_PREFIX must hold no braces in a cluster, where they are hash tags");
}

function problem(message: string): { readonly kind: "problem"; readonly message: string } {
  return { kind: "problem", message };
}
