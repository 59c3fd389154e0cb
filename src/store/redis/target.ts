/** The address of a Redis server. */
export type RedisAddress =
  | {
      readonly kind: "tcp";
      readonly host: string;
      readonly port: number;
      readonly isTls: boolean;
    }
  | { readonly kind: "unix"; readonly path: string };

/** The address of a server that moves, and that must be looked up. */
export interface MovingAddress {
  readonly kind: "moving";
  readonly isTls: boolean;
  /** Returns the current address. Rejects with a `ServiceError` if it is unknown. */
  readonly find: () => Promise<HostPort>;
}

/** Credentials for a server. */
interface RedisCredentials {
  readonly username?: string;
  readonly password?: string;
}

/** Credentials for a Redis server, and the database to use. */
export interface RedisLogin extends RedisCredentials {
  /** Database number, from 0. Default 0. */
  readonly database: number;
}

/** The address of a Redis server, and the credentials for it. */
export interface RedisTarget extends RedisLogin {
  readonly address: RedisAddress;
}

/** The user's settings for one Redis. The names below are those of envoyproxy/ratelimit. */
export interface RedisTargetText {
  /**
   * REDIS_URL: `host`, `host:port`, `[v6]:port`, `redis://`, `rediss://` with `user:password@` and
   * `/database`, `unix:///path`, or a path. A password may contain any character, including `@` and
   * `/`.
   */
  readonly url: string;
  /** REDIS_SOCKET_TYPE. Default: the type in the URL, else tcp. */
  readonly socketType?: "tcp" | "tls" | "unix";
  /** REDIS_AUTH: `password` or `user:password`. Takes precedence over the URL. */
  readonly auth?: string;
}

/** The user's settings for one Redis that sentinels monitor. */
export interface SentinelTargetText extends RedisTargetText {
  /** REDIS_SENTINEL_AUTH: `password` or `user:password`, for the sentinels themselves. */
  readonly sentinelAuth?: string;
}

/** A target, or the problem with the text. The message never contains any of the text. */
export type ParsedTarget<Target> =
  | { readonly kind: "target"; readonly target: Target }
  | { readonly kind: "problem"; readonly message: string };

/** A host and a port. */
export interface HostPort {
  readonly host: string;
  readonly port: number;
}

/** Seed nodes of a Redis Cluster, and the credentials for all nodes. */
export interface ClusterTarget extends RedisCredentials {
  /** At least one. */
  readonly nodes: readonly HostPort[];
  readonly isTls: boolean;
}

/** Sentinels that know the current address of a Redis, and the credentials for it and for them. */
export interface SentinelTarget extends RedisLogin {
  /** The sentinels' name for the primary. */
  readonly primaryName: string;
  /** At least one. */
  readonly sentinels: readonly HostPort[];
  readonly sentinelLogin: RedisCredentials;
  /** Applies to both the Redis and the sentinels. */
  readonly isTls: boolean;
}

/** Maximum number of configured nodes. The other nodes are learned from these. */
export const clusterSeedsMax = 64;

/** Maximum number of configured sentinels. Each of them is asked. */
export const sentinelsMax = 16;

/** Source: redis.conf, `port`. */
const defaultPort = 6379;

/** Source: sentinel.conf, `port`. */
const defaultSentinelPort = 26_379;

/** Parses the address of one Redis server. */
export function parseRedisTarget({
  url,
  socketType,
  auth,
}: RedisTargetText): ParsedTarget<RedisTarget> {
  const { scheme, userInfo, place } = splitUrl(url.trim());
  if (!schemes.has(scheme)) {
    return problem("the scheme must be redis, rediss, unix, or omitted");
  }
  const credentials = auth === undefined ? parseUserInfo(userInfo) : parseAuth(auth);
  if (scheme === "unix" || socketType === "unix" || (scheme === "" && place.startsWith("/"))) {
    if (!place.startsWith("/")) return problem("the path of a Unix socket must be absolute");
    if (socketType === "tcp" || socketType === "tls") {
      return problem("for a path, the socket type must be unix");
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
 * Parses the addresses of nodes of a Redis Cluster: `host:port`, separated by commas. An optional
 * prefix of the first one (`rediss://user:password@`) applies to all of them.
 */
export function parseClusterTarget({
  url,
  socketType,
  auth,
}: RedisTargetText): ParsedTarget<ClusterTarget> {
  const { scheme, userInfo, place } = splitUrl(url.trim());
  const isUnix = scheme === "unix" || socketType === "unix" || place.startsWith("/");
  if (!schemes.has(scheme) || isUnix) {
    return problem("the scheme must be redis, rediss, or omitted, because nodes use TCP");
  }
  const credentials = auth === undefined ? parseUserInfo(userInfo) : parseAuth(auth);
  const nodes: HostPort[] = [];
  const pieces = place.split(",");
  if (pieces.length > clusterSeedsMax)
    return problem(`at most ${clusterSeedsMax} nodes are allowed`);
  for (const piece of pieces) {
    const parsed = parsePlace(piece.trim());
    if (parsed.kind === "problem")
      return problem("must be a list of host:port, separated by commas");
    if (parsed.database !== 0) return problem("a cluster has only database 0");
    nodes.push({ host: parsed.host, port: parsed.port });
  }
  const isTls = scheme === "rediss" || socketType === "tls";
  return { kind: "target", target: { ...credentials, nodes, isTls } };
}

/**
 * Parses the sentinels' name for a Redis, and their addresses: `name,host:port,host:port`. An
 * optional prefix of the name (`rediss://user:password@`) applies to the Redis; TLS applies to all.
 */
export function parseSentinelTarget(text: SentinelTargetText): ParsedTarget<SentinelTarget> {
  const { url, socketType, auth, sentinelAuth } = text;
  const { scheme, userInfo, place } = splitUrl(url.trim());
  if (!schemes.has(scheme) || scheme === "unix" || socketType === "unix") {
    return problem("the scheme must be redis, rediss, or omitted, because sentinels use TCP");
  }
  const [primaryName = "", ...pieces] = place.split(",").map((piece) => piece.trim());
  // Source: sentinel.c accepts only these characters in a name.
  if (!/^[A-Za-z0-9._-]+$/.test(primaryName) || pieces.length === 0) {
    return problem("must be the primary's name and then the sentinels, separated by commas");
  }
  if (pieces.length > sentinelsMax) return problem(`at most ${sentinelsMax} sentinels are allowed`);
  const sentinels: HostPort[] = [];
  for (const piece of pieces) {
    const parsed = parsePlace(piece, defaultSentinelPort);
    if (parsed.kind === "problem" || parsed.database !== 0) {
      return problem("each sentinel must be host:port");
    }
    sentinels.push({ host: parsed.host, port: parsed.port });
  }
  const login = auth === undefined ? parseUserInfo(userInfo) : parseAuth(auth);
  const sentinelLogin = parseAuth(sentinelAuth ?? "");
  const isTls = scheme === "rediss" || socketType === "tls";
  const target = { ...login, database: 0, primaryName, sentinels, sentinelLogin, isTls };
  return { kind: "target", target };
}

/**
 * Returns a target for logs: only the address, without credentials. Example:
 * `rediss://cache:6379/0`.
 */
export function redactRedisTarget({ address, database }: RedisTarget): string {
  if (address.kind === "unix") return `unix://${address.path}`;
  return `${address.isTls ? "rediss" : "redis"}://${redactPlace(address)}/${database}`;
}

/** Returns a cluster for logs: only addresses. Example: `redis://10.0.0.1:6379,10.0.0.2:6379`. */
export function redactClusterTarget({ nodes, isTls }: ClusterTarget): string {
  return `${isTls ? "rediss" : "redis"}://${nodes.map(redactPlace).join(",")}`;
}

/** Returns only the addresses, for logs: `redis://cache,10.0.0.1:26379,10.0.0.2:26379`. */
export function redactSentinelTarget({ primaryName, sentinels, isTls }: SentinelTarget): string {
  const places = [primaryName, ...sentinels.map(redactPlace)];
  return `${isTls ? "rediss" : "redis"}://${places.join(",")}`;
}

function redactPlace({ host, port }: HostPort): string {
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
}

interface UrlParts {
  /** In lower case; empty if there is none. */
  readonly scheme: string;
  readonly userInfo: string | undefined;
  /** Host, port and database, or a path. */
  readonly place: string;
}

const schemes: ReadonlySet<string> = new Set(["", "redis", "rediss", "unix"]);

/** Splits a URL. Uses the last `@`: hosts never contain one, but passwords may. */
function splitUrl(text: string): UrlParts {
  const schemeEnd = text.indexOf("://");
  const scheme = schemeEnd < 0 ? "" : text.slice(0, schemeEnd).toLowerCase();
  const rest = schemeEnd < 0 ? text : text.slice(schemeEnd + 3);
  const userEnd = rest.lastIndexOf("@");
  const userInfo = userEnd < 0 ? undefined : rest.slice(0, userEnd);
  return { scheme, userInfo, place: rest.slice(userEnd + 1) };
}

/**
 * Parses `user:password` or a password. A user without a password could never log in, so a single
 * word is the password, as in redis-cli.
 */
function parseUserInfo(userInfo: string | undefined): RedisCredentials {
  const { username, password } = parseAuth(userInfo ?? "");
  return {
    ...(username === undefined ? {} : { username: decodePercent(username) }),
    ...(password === undefined ? {} : { password: decodePercent(password) }),
  };
}

function parseAuth(auth: string): RedisCredentials {
  const colon = auth.indexOf(":");
  const username = auth.slice(0, Math.max(0, colon));
  const password = auth.slice(colon + 1);
  if (password === "") return {};
  return username === "" ? { password } : { username, password };
}

/** Decodes percent encoding. Returns the text unchanged if it is not valid percent encoding. */
function decodePercent(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function parsePlace(
  place: string,
  standardPort = defaultPort,
):
  | {
      readonly kind: "place";
      readonly host: string;
      readonly port: number;
      readonly database: number;
    }
  | { readonly kind: "problem"; readonly message: string } {
  if (place.includes(",")) {
    return problem("contains several servers: set REDIS_TYPE to cluster or sentinel");
  }
  const match = placePattern.exec(place);
  if (match === null) return problem("must be host:port or host:port/database");
  const [, v6Host, plainHost, portText, databaseText] = match;
  const port = portText === undefined ? standardPort : Number(portText);
  if (port < 1 || port > 65_535) return problem("the port must be from 1 to 65535");
  const host = v6Host ?? plainHost ?? "";
  return { kind: "place", host, port, database: Number(databaseText ?? 0) };
}

/** `[v6]` or a host, then a port and a database. Nothing else, so that no option is ignored. */
const placePattern = /^(?:\[([0-9a-fA-F:.%]+)\]|([^/:?#[\]@\s]+))(?::(\d{1,5}))?(?:\/(\d{0,4}))?$/;

function unix(path: string): RedisTarget["address"] {
  return { kind: "unix", path };
}

function problem(message: string): { readonly kind: "problem"; readonly message: string } {
  return { kind: "problem", message };
}
