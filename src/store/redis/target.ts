/** Where a Redis server listens, and who we are to it. */
export interface RedisTarget {
  readonly address:
    | {
        readonly kind: "tcp";
        readonly host: string;
        readonly port: number;
        readonly isTls: boolean;
      }
    | { readonly kind: "unix"; readonly path: string };
  readonly username?: string;
  readonly password?: string;
  /** Database number, from 0. Default 0. */
  readonly database: number;
}

/** What the user wrote about one Redis. Names in the docs are envoyproxy/ratelimit's. */
export interface RedisTargetText {
  /**
   * REDIS_URL: `host`, `host:port`, `[v6]:port`, `redis://`, `rediss://` with `user:password@` and
   * `/database`, `unix:///path`, or a path. A password may hold any character, `@` and `/`
   * included.
   */
  readonly url: string;
  /** REDIS_SOCKET_TYPE. Default: what the URL says, else tcp. */
  readonly socketType?: "tcp" | "tls" | "unix";
  /** REDIS_AUTH: `password` or `user:password`; wins over what the URL says. */
  readonly auth?: string;
}

/** A target, or what is wrong with the text; the message never echoes any of it. */
export type ParsedRedisTarget =
  | { readonly kind: "target"; readonly target: RedisTarget }
  | { readonly kind: "problem"; readonly message: string };

/** Nodes of a Redis Cluster to begin with, and who we are to each of them. */
export interface ClusterTarget extends Pick<RedisTarget, "username" | "password"> {
  /** At least one. */
  readonly nodes: readonly { readonly host: string; readonly port: number }[];
  readonly isTls: boolean;
}

/** A cluster, or what is wrong with the text; the message never echoes any of it. */
export type ParsedClusterTarget =
  | { readonly kind: "target"; readonly target: ClusterTarget }
  | { readonly kind: "problem"; readonly message: string };

/** The most nodes that one may name; the others are learned from these. */
export const clusterSeedsMax = 64;

/** Source: redis.conf, `port`. */
const defaultPort = 6379;

/** Parses the address of one Redis server. */
export function parseRedisTarget({ url, socketType, auth }: RedisTargetText): ParsedRedisTarget {
  const { scheme, userInfo, place } = splitUrl(url.trim());
  if (!schemes.has(scheme)) {
    return problem("the scheme must be redis, rediss or unix, or left out");
  }
  const credentials = auth === undefined ? parseUserInfo(userInfo) : parseAuth(auth);
  if (scheme === "unix" || socketType === "unix" || (scheme === "" && place.startsWith("/"))) {
    if (!place.startsWith("/")) return problem("a unix socket is an absolute path");
    if (socketType === "tcp" || socketType === "tls") {
      return problem("a path needs the socket type unix");
    }
    return { kind: "target", target: { address: unix(place), ...credentials, database: 0 } };
  }
  const parsed = parsePlace(place);
  if (parsed.kind === "problem") return parsed;
  const isTls = scheme === "rediss" || socketType === "tls";
  const { host, port, database } = parsed;
  return {
    kind: "target",
    target: { address: { kind: "tcp", host, port, isTls }, ...credentials, database },
  };
}

/**
 * Parses the addresses of nodes of a Redis Cluster: `host:port` with commas between. What may stand
 * before the first (`rediss://user:password@`) holds for all of them.
 */
export function parseClusterTarget({
  url,
  socketType,
  auth,
}: RedisTargetText): ParsedClusterTarget {
  const { scheme, userInfo, place } = splitUrl(url.trim());
  const isUnix = scheme === "unix" || socketType === "unix" || place.startsWith("/");
  if (!schemes.has(scheme) || isUnix) {
    return problem("the scheme must be redis or rediss, or left out: nodes are reached over TCP");
  }
  const credentials = auth === undefined ? parseUserInfo(userInfo) : parseAuth(auth);
  const nodes: { host: string; port: number }[] = [];
  const pieces = place.split(",");
  if (pieces.length > clusterSeedsMax) return problem(`at most ${clusterSeedsMax} nodes`);
  for (const piece of pieces) {
    const parsed = parsePlace(piece.trim());
    if (parsed.kind === "problem") return problem("it must be host:port, with commas between");
    if (parsed.database !== 0) return problem("a cluster has database 0 and no other");
    nodes.push({ host: parsed.host, port: parsed.port });
  }
  const isTls = scheme === "rediss" || socketType === "tls";
  return { kind: "target", target: { ...credentials, nodes, isTls } };
}

/**
 * A target in logs: the address alone, without who we are to it. Example: `rediss://cache:6379/0`.
 */
export function redactRedisTarget({ address, database }: RedisTarget): string {
  if (address.kind === "unix") return `unix://${address.path}`;
  const host = address.host.includes(":") ? `[${address.host}]` : address.host;
  return `${address.isTls ? "rediss" : "redis"}://${host}:${address.port}/${database}`;
}

/** A cluster in logs: addresses alone. Example: `redis://10.0.0.1:6379,10.0.0.2:6379`. */
export function redactClusterTarget({ nodes, isTls }: ClusterTarget): string {
  const places = nodes.map(({ host, port }) => {
    return `${host.includes(":") ? `[${host}]` : host}:${port}`;
  });
  return `${isTls ? "rediss" : "redis"}://${places.join(",")}`;
}

interface UrlParts {
  /** In lower case; empty when there is none. */
  readonly scheme: string;
  readonly userInfo: string | undefined;
  /** Host, port and database, or a path. */
  readonly place: string;
}

interface Credentials {
  readonly username?: string;
  readonly password?: string;
}

const schemes: ReadonlySet<string> = new Set(["", "redis", "rediss", "unix"]);

/** Splits at the last `@`: no host holds one, and passwords do. */
function splitUrl(text: string): UrlParts {
  const schemeEnd = text.indexOf("://");
  const scheme = schemeEnd < 0 ? "" : text.slice(0, schemeEnd).toLowerCase();
  const rest = schemeEnd < 0 ? text : text.slice(schemeEnd + 3);
  const userEnd = rest.lastIndexOf("@");
  const userInfo = userEnd < 0 ? undefined : rest.slice(0, userEnd);
  return { scheme, userInfo, place: rest.slice(userEnd + 1) };
}

/**
 * A user alone could never be let in, so what stands alone is the password, as redis-cli has it.
 */
function parseUserInfo(userInfo: string | undefined): Credentials {
  const { username, password } = parseAuth(userInfo ?? "");
  return {
    ...(username === undefined ? {} : { username: decodePercent(username) }),
    ...(password === undefined ? {} : { password: decodePercent(password) }),
  };
}

function parseAuth(auth: string): Credentials {
  const colon = auth.indexOf(":");
  const username = auth.slice(0, Math.max(0, colon));
  const password = auth.slice(colon + 1);
  if (password === "") return {};
  return username === "" ? { password } : { username, password };
}

/** A password that was written without percent signs in mind is taken as it stands. */
function decodePercent(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function parsePlace(place: string):
  | {
      readonly kind: "place";
      readonly host: string;
      readonly port: number;
      readonly database: number;
    }
  | { readonly kind: "problem"; readonly message: string } {
  if (place.includes(",")) {
    return problem("it names several servers: for a cluster, set REDIS_TYPE to cluster");
  }
  const match = placePattern.exec(place);
  if (match === null) return problem("it must be host:port, with /database after it if need be");
  const [, v6Host, plainHost, portText, databaseText] = match;
  const port = portText === undefined ? defaultPort : Number(portText);
  if (port < 1 || port > 65_535) return problem("the port must be 1 to 65535");
  const host = v6Host ?? plainHost ?? "";
  return { kind: "place", host, port, database: Number(databaseText ?? 0) };
}

/** `[v6]` or a host, then a port, then a database; nothing else, so that no option is ignored. */
const placePattern = /^(?:\[([0-9a-fA-F:.%]+)\]|([^/:?#[\]@\s]+))(?::(\d{1,5}))?(?:\/(\d{0,4}))?$/;

function unix(path: string): RedisTarget["address"] {
  return { kind: "unix", path };
}

function problem(message: string): { readonly kind: "problem"; readonly message: string } {
  return { kind: "problem", message };
}
