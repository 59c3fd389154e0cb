import type { Usage } from "../core/budgets/usage.js";
import { parseSourceAddress } from "../policy/text/network.js";

/** What is read of a line beside its time, its host, and whether it was limited. */
export interface WantedFacts {
  /** Headers by name, in lower case, pseudo-headers among them. */
  readonly headers: readonly string[];
  readonly address: "wanted" | "unwanted";
  /** Default: unwanted. */
  readonly timing?: "wanted" | "unwanted";
  /** Default: unwanted. */
  readonly usage?: "wanted" | "unwanted";
}

/** How long a request took, and how it ended. */
export interface RequestTiming {
  /** From its first byte to the last byte of the response; NaN where the log does not say it. */
  readonly durationUs: number;
  /** Whether the response has a status of 500 to 599. Undefined: the log does not say it. */
  readonly isError: boolean | undefined;
  /** Whether it reached the service; true where the log does not say it. */
  readonly isServed: boolean;
}

/** What a call used, as far as the log says it. */
export interface LoggedUsage {
  /** Empty where the log does not say it. */
  readonly model: string;
  readonly counts: Usage;
}

/** One request of an access log. */
export interface LoggedRequest {
  /** When it came, in microseconds since 1970. */
  readonly timeUs: number;
  /** Whether a rate limit refused it then. */
  readonly wasLimited: boolean;
  /** Its host; empty where the log does not say it. */
  readonly authority: string;
  /** Where it came from, without a port; empty also where that is not wanted. */
  readonly address: string;
  /** The wanted headers in their order, empty where the log does not say them. */
  readonly headers: readonly string[];
  /** Undefined where it is not wanted. */
  readonly timing?: RequestTiming;
  /** Undefined where it is not wanted, or the format has no room for it. */
  readonly usage?: LoggedUsage;
}

/** Reads lines of one kind of log; undefined for one that is none. */
export type LineReader = (line: string) => LoggedRequest | undefined;

/** What Envoy writes where there is nothing. */
const absent = "-";

/** What a log says; empty where that is nothing. */
export function saidText(text: string): string {
  return text === absent ? "" : text;
}

/**
 * A duration in milliseconds, a status and the address of the upstream host as a log says them.
 *
 * @param upstreamHost undefined where the log has no field for it
 */
export function readTiming(
  duration: string,
  status: string,
  upstreamHost: string | undefined,
): RequestTiming {
  return {
    durationUs: saidText(duration) === "" ? Number.NaN : Math.round(1_000 * Number(duration)),
    isError: /^\d{3}$/.test(status) ? status.startsWith("5") : undefined,
    isServed: upstreamHost === undefined || saidText(upstreamHost) !== "",
  };
}

/** Whether a request was refused by a rate limit. Source: Envoy, RESPONSE_FLAGS, `RL`. */
export function isLimited(flags: string): boolean {
  return flags === "RL" || (flags.includes("RL") && flags.split(",").includes("RL"));
}

/**
 * The caller's address, without its port: what the log says of it, or else the last of
 * `x-forwarded-for`, which an edge proxy itself has put there.
 */
export function callerAddress(remoteAddress: string, forwardedFor: string): string {
  if (saidText(remoteAddress) !== "") return withoutPort(remoteAddress);
  const last = forwardedFor.slice(forwardedFor.lastIndexOf(",") + 1).trim();
  return withoutPort(saidText(last));
}

/** `10.0.0.1:5000` is `10.0.0.1`; of IPv6 the brackets stay, and are given to one without. */
function withoutPort(address: string): string {
  const colon = address.indexOf(":");
  if (colon === -1) return address;
  if (address.startsWith("[")) return address.slice(0, address.indexOf("]") + 1) || address;
  if (!address.includes(":", colon + 1)) return address.slice(0, colon);
  return parseSourceAddress(address) === undefined ? address : `[${address}]`;
}
