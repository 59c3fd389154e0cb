import type { Usage } from "../core/budgets/usage.js";
import { parseSourceAddress } from "../policy/text/network.js";

/** Facts to read from a line, in addition to its time, its host, and whether it was limited. */
export interface WantedFacts {
  /** Names of headers in lower case, including pseudo-headers. */
  readonly headers: readonly string[];
  readonly address: "wanted" | "unwanted";
  /** Default: unwanted. */
  readonly timing?: "wanted" | "unwanted";
  /** Default: unwanted. */
  readonly usage?: "wanted" | "unwanted";
}

/** Duration of a request, and its result. */
export interface RequestTiming {
  /** From its first byte to the last byte of the response; NaN if the log does not contain it. */
  readonly durationUs: number;
  /** Whether the response has a status of 500 to 599. Undefined: the log does not contain it. */
  readonly isError: boolean | undefined;
  /** Whether it reached the service; true if the log does not contain it. */
  readonly isServed: boolean;
}

/** Usage of a call, as far as the log contains it. */
export interface LoggedUsage {
  /** Empty if the log does not contain it. */
  readonly model: string;
  readonly counts: Usage;
}

/** One request of an access log. */
export interface LoggedRequest {
  /** Time of its arrival, in microseconds since 1970. */
  readonly timeUs: number;
  /** Whether a rate limit refused it at that time. */
  readonly wasLimited: boolean;
  /** Host of the request; empty if the log does not contain it. */
  readonly authority: string;
  /** Address of the caller, without a port; empty also if it is unwanted. */
  readonly address: string;
  /** Wanted headers in their order; empty if the log does not contain them. */
  readonly headers: readonly string[];
  /** Undefined if it is unwanted. */
  readonly timing?: RequestTiming;
  /** Undefined if it is unwanted, or not part of the format. */
  readonly usage?: LoggedUsage;
}

/** Reads lines of one format; undefined for a line in another format. */
export type LineReader = (line: string) => LoggedRequest | undefined;

/** Envoy's placeholder for a missing value. */
const absent = "-";

/** Returns the value of a field; empty if it is missing. */
export function saidText(text: string): string {
  return text === absent ? "" : text;
}

/**
 * Reads a duration in milliseconds, a status and the address of the upstream host.
 *
 * @param upstreamHost undefined if the log has no field for it
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

/** Reports whether a rate limit refused a request. Source: Envoy, RESPONSE_FLAGS, `RL`. */
export function isLimited(flags: string): boolean {
  return flags === "RL" || (flags.includes("RL") && flags.split(",").includes("RL"));
}

/**
 * Returns the caller's address without its port: the one in the log, or else the last one in
 * `x-forwarded-for`, which an edge proxy itself has added.
 */
export function callerAddress(remoteAddress: string, forwardedFor: string): string {
  if (saidText(remoteAddress) !== "") return withoutPort(remoteAddress);
  const last = forwardedFor.slice(forwardedFor.lastIndexOf(",") + 1).trim();
  return withoutPort(saidText(last));
}

/** Turns `10.0.0.1:5000` into `10.0.0.1`. IPv6 addresses keep their brackets or get them. */
function withoutPort(address: string): string {
  const colon = address.indexOf(":");
  if (colon === -1) return address;
  if (address.startsWith("[")) return address.slice(0, address.indexOf("]") + 1) || address;
  if (!address.includes(":", colon + 1)) return address.slice(0, colon);
  return parseSourceAddress(address) === undefined ? address : `[${address}]`;
}
