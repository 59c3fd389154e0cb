import { type ErrorCode, isServiceError, ServiceError } from "../../core/base/errors.js";

/**
 * The error code for the first word of a reply. `detail` says what to check. It is Headgate's text,
 * never Redis's.
 */
interface ReplyRow {
  readonly word: string;
  readonly code: ErrorCode;
  readonly detail?: string;
}

const noPermissionDetail = "The user needs a command, or the key pattern of Headgate's key prefix.";

const clusterDetail = "The server is a node of a Redis Cluster: set REDIS_TYPE to cluster.";

/** Source: the error prefixes in redis/src/server.c and acl.c, the same in Valkey. */
const replyRows: readonly ReplyRow[] = [
  { word: "OOM", code: "STORE_OUT_OF_MEMORY" },
  { word: "READONLY", code: "STORE_READ_ONLY" },
  { word: "LOADING", code: "STORE_LOADING" },
  {
    word: "WRONGPASS",
    code: "STORE_UNAUTHENTICATED",
    detail: "The user or password is wrong, or the user is disabled.",
  },
  {
    word: "NOAUTH",
    code: "STORE_UNAUTHENTICATED",
    detail: "The server requires a password, and none is set.",
  },
  {
    word: "DENIED",
    code: "STORE_UNAUTHENTICATED",
    detail: "The server has no password and accepts only local clients (protected mode).",
  },
  { word: "NOPERM", code: "STORE_ACCESS_DENIED", detail: noPermissionDetail },
  {
    word: "NOSCRIPT",
    code: "STORE_UNAVAILABLE",
    detail: "The server repeatedly drops Headgate's script.",
  },
  {
    word: "BUSY",
    code: "STORE_UNAVAILABLE",
    detail: "The server is busy with a script of another client.",
  },
  {
    word: "MASTERDOWN",
    code: "STORE_UNAVAILABLE",
    detail: "The server is a replica that has lost its primary.",
  },
  { word: "NOREPLICAS", code: "STORE_TOO_FEW_REPLICAS" },
  { word: "MISCONF", code: "STORE_NOT_SAVING" },
  { word: "CLUSTERDOWN", code: "STORE_UNAVAILABLE", detail: "The cluster is down." },
  { word: "CROSSSLOT", code: "STORE_PROTOCOL", detail: clusterDetail },
];

/**
 * System errors of connections that could not be made or were lost. Source: Node's error codes.
 */
const systemRows: readonly (readonly [code: RegExp, detail: string])[] = [
  [/^ECONNREFUSED$/, "No server listens at the address."],
  [/^(ENOTFOUND|EAI_AGAIN)$/, "The host name cannot be resolved."],
  [/^(ETIMEDOUT|EHOSTUNREACH|ENETUNREACH)$/, "The address cannot be reached."],
  [/^ENOENT$/, "The socket does not exist."],
  [/^EACCES$/, "This process has no permission to open the socket."],
  [/^(ECONNRESET|EPIPE)$/, "The server closed the connection. Check whether it requires TLS."],
];

/** Headgate's error code for a connection that the server closed before TLS was established. */
export const cutHandshakeCode = "ERR_TLS_HANDSHAKE_CUT";

/** Errors of TLS handshakes. The first matching row applies. Source: Node's TLS errors. */
const tlsRows: readonly (readonly [code: RegExp, detail: string])[] = [
  [/^CERT_HAS_EXPIRED$/, "The server's certificate has expired."],
  [/^CERT_NOT_YET_VALID$/, "The server's certificate is not valid yet. Check both clocks."],
  [/^ERR_TLS_CERT_ALTNAME/, "The server's certificate does not contain the configured host name."],
  [
    /^(CERT_|ERR_TLS_CERT|UNABLE_TO_)|SELF_SIGNED/,
    "The server's certificate is not signed by a trusted CA.",
  ],
  [
    new RegExp(`^${cutHandshakeCode}$`),
    "The server closed the TLS handshake. Check that this port uses TLS.",
  ],
  [/WRONG_VERSION_NUMBER|PACKET_LENGTH/, "The port does not use TLS."],
  [
    /CERTIFICATE_REQUIRED|HANDSHAKE_FAILURE/,
    "The server requires a client certificate, or another version of TLS.",
  ],
  [/ALERT.*(CA|CERTIFICATE)/, "The server rejects the client certificate."],
  [/^(ERR_SSL|ERR_OSSL|ERR_TLS|EPROTO)/, "Check the port and the certificates."],
];

/** Replies that start with the general word ERR. */
const sentenceRows: readonly { readonly start: string; readonly row: Omit<ReplyRow, "word"> }[] = [
  { start: "ERR max number of clients", row: { code: "STORE_TOO_MANY_CLIENTS" } },
  {
    start: "ERR This instance has cluster support disabled",
    row: {
      code: "STORE_PROTOCOL",
      detail: "The server is not a cluster: set REDIS_TYPE to single.",
    },
  },
  // Redis before version 6, which had no users.
  {
    start: "ERR invalid password",
    row: { code: "STORE_UNAUTHENTICATED", detail: "The password is wrong." },
  },
  // A command inside a script: first Redis 7, then Valkey.
  {
    start: "ERR The user executing the script can't",
    row: { code: "STORE_ACCESS_DENIED", detail: noPermissionDetail },
  },
  {
    start: "ERR ACL failure in script",
    row: { code: "STORE_ACCESS_DENIED", detail: noPermissionDetail },
  },
];

/**
 * Converts any failure of the client library to a `ServiceError`. The library's errors contain the
 * arguments of the command (keys, packed charges, the password of AUTH), so nothing of them is
 * kept, not even as `cause`.
 */
export function toStoreError(error: unknown): ServiceError {
  // Already a `ServiceError`, for example from the look-up of the server's address.
  if (isServiceError(error)) return error;
  if (!(error instanceof Error)) return new ServiceError("STORE_UNAVAILABLE");
  // Every error reply has this name. Time-outs, lost connections and refused ones have others.
  if (error.name !== "ReplyError") return toConnectionError(error);
  const { message } = error;
  if (isSelectReply(error)) {
    return new ServiceError(
      "STORE_ACCESS_DENIED",
      "The database does not exist, or the user may not use it.",
    );
  }
  const refusal = toSlotRefusal(message);
  if (refusal !== undefined) return refusal;
  const row =
    replyRows.find(({ word }) => startsWithWord(message, word)) ??
    sentenceRows.find(({ start }) => message.startsWith(start))?.row;
  return row === undefined
    ? new ServiceError("STORE_PROTOCOL")
    : new ServiceError(row.code, row.detail);
}

function toConnectionError(error: Error): ServiceError {
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  const [, tls] = tlsRows.find(([pattern]) => pattern.test(code)) ?? [];
  if (tls !== undefined) return new ServiceError("STORE_TLS_FAILED", tls);
  const [, detail] = systemRows.find(([pattern]) => pattern.test(code)) ?? [];
  return new ServiceError("STORE_UNAVAILABLE", detail);
}

/** Reports whether the next attempt will most likely fail the same way, so that calls say why. */
export function isLastingRefusal({ code }: ServiceError): boolean {
  return lastingCodes.has(code);
}

const lastingCodes: ReadonlySet<ErrorCode> = new Set([
  "STORE_UNAUTHENTICATED",
  "STORE_ACCESS_DENIED",
  "STORE_TLS_FAILED",
]);

/** Kind of a cluster node's redirection. Source: "Redis cluster specification", redirection. */
type SlotRefusalKind =
  /** Another node permanently serves the slot. */
  | "moved"
  /** The key may be on another node, to which its slot is being moved. */
  | "ask"
  /** Some of the keys are on this node and some on another. */
  | "tryAgain";

/** The error if a cluster node did not run a call because of the location of its keys. */
export class SlotRefusal extends ServiceError {
  readonly kind: SlotRefusalKind;
  /** `host:port` of the node to ask instead. The host is empty if it is the same. */
  readonly address: string;

  constructor(kind: SlotRefusalKind, address: string) {
    if (kind === "tryAgain") super("STORE_UNAVAILABLE", "The cluster is moving Headgate's keys.");
    else super("STORE_PROTOCOL", clusterDetail);
    this.kind = kind;
    this.address = address;
  }
}

function toSlotRefusal(message: string): SlotRefusal | undefined {
  if (startsWithWord(message, "TRYAGAIN")) return new SlotRefusal("tryAgain", "");
  const match = /^(MOVED|ASK) \d+ (\S*)/.exec(message);
  if (match === null) return undefined;
  return new SlotRefusal(match[1] === "MOVED" ? "moved" : "ask", match[2] ?? "");
}

/** Reports whether the script must be loaded: after a restart, a failover or SCRIPT FLUSH. */
export function isNoScriptReply(error: unknown): boolean {
  return error instanceof Error && startsWithWord(error.message, "NOSCRIPT");
}

/** Reports whether the server refused the configured database. */
export function isSelectReply(error: unknown): boolean {
  if (!(error instanceof Error) || error.name !== "ReplyError" || !("command" in error))
    return false;
  const { command } = error;
  if (typeof command !== "object" || command === null || !("name" in command)) return false;
  return command.name === "select";
}

/** Reports whether the server is no longer primary. A new connection may find the new primary. */
export function isReadOnlyReply(error: Error): boolean {
  return startsWithWord(error.message, "READONLY");
}

/**
 * Before Redis 7, an error inside a script follows the script's own error, after a dash:
 * `ERR Error running script (call to f_…): @user_script:1: -OOM command not allowed…`.
 */
function startsWithWord(message: string, word: string): boolean {
  return message.startsWith(`${word} `) || message.includes(`: -${word} `);
}
