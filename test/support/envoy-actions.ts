import { isIPv6 } from "node:net";
import type { DescriptorEntry } from "../../src/core/limits/key.js";
import type { DescriptorQuery } from "../../src/decide/rate-limit/query.js";

/** A request as it reaches an Envoy. */
export interface SentRequest {
  readonly method: string;
  readonly path: string;
  /** By lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  /** Of the caller: an IP address as Envoy writes it, without a port. */
  readonly address: string;
}

/** An entry of `rate_limits`. Source: envoy.config.route.v3.RateLimit. */
export interface EnvoyRateLimit {
  readonly actions: readonly Action[];
  readonly hits_addend?: { readonly number: number; readonly is_negative_hits?: boolean };
}

/** Those actions that can be told from a request alone. */
interface Action {
  readonly remote_address?: object;
  readonly masked_remote_address?: {
    readonly v4_prefix_mask_len: number;
    readonly v6_prefix_mask_len: number;
  };
  readonly destination_cluster?: object;
  readonly generic_key?: DescriptorFields;
  readonly request_headers?: { readonly header_name: string; readonly descriptor_key: string };
  readonly query_parameters?: {
    readonly query_parameter_name: string;
    readonly descriptor_key: string;
  };
  readonly header_value_match?: DescriptorFields & {
    readonly expect_match?: boolean;
    readonly headers: readonly HeaderMatcher[];
  };
}

interface DescriptorFields {
  readonly descriptor_key: string;
  readonly descriptor_value: string;
}

interface HeaderMatcher {
  readonly name: string;
  readonly present_match?: boolean;
  readonly string_match?: { readonly exact?: string; readonly prefix?: string };
}

/**
 * What Envoy 1.40's filter asks for a request: a model of it, for tests of many requests. It shares
 * nothing with the product's own; a test with a real Envoy holds both to the same answers.
 */
export function askedByEnvoy(
  rateLimits: readonly EnvoyRateLimit[],
  sent: SentRequest,
  cluster: string,
): readonly DescriptorQuery[] {
  return rateLimits.flatMap(({ actions, hits_addend: addend }) => {
    const entries: DescriptorEntry[] = [];
    for (const action of actions) {
      const entry = entryOf(action, sent, cluster);
      if (entry === undefined) return [];
      entries.push(entry);
    }
    const hits = addend?.number ?? 1;
    return [{ entries, hits, isRefund: addend?.is_negative_hits === true }];
  });
}

function entryOf(action: Action, sent: SentRequest, cluster: string): DescriptorEntry | undefined {
  const headers = new Map(Object.entries(sent.headers));
  headers.set(":method", sent.method).set(":path", sent.path);
  if (action.remote_address !== undefined) return { key: "remote_address", value: sent.address };
  if (action.masked_remote_address !== undefined) {
    return { key: "masked_remote_address", value: networkOf(sent.address) };
  }
  if (action.destination_cluster !== undefined)
    return { key: "destination_cluster", value: cluster };
  const { generic_key: fixed, header_value_match: match } = action;
  if (fixed !== undefined) return { key: fixed.descriptor_key, value: fixed.descriptor_value };
  const { request_headers: header, query_parameters: query } = action;
  if (header !== undefined) return made(header.descriptor_key, headers.get(header.header_name));
  if (query !== undefined) {
    return made(query.descriptor_key, parameterOf(sent.path, query.query_parameter_name));
  }
  if (match === undefined) throw new Error("the model has no such action");
  const isMet = match.headers.every((one) => isMatch(one, headers.get(one.name)));
  const isWanted = isMet === (match.expect_match ?? true);
  return isWanted ? { key: match.descriptor_key, value: match.descriptor_value } : undefined;
}

function made(key: string, value: string | undefined): DescriptorEntry | undefined {
  return value === undefined ? undefined : { key, value };
}

/** Of the networks that tests ask for: 16 bits of IPv4, and 32 of IPv6. */
function networkOf(address: string): string {
  if (isIPv6(address)) return `${address.split(":").slice(0, 2).join(":")}::/32`;
  return `${address.split(".").slice(0, 2).join(".")}.0.0/16`;
}

/** The first of that name, its percent signs decoded. */
function parameterOf(path: string, name: string): string | undefined {
  const query = path.includes("?") ? path.slice(path.indexOf("?") + 1) : "";
  for (const pair of query.split("&")) {
    const [key = "", ...rest] = pair.split("=");
    if (decoded(key) === name) return decoded(rest.join("="));
  }
  return undefined;
}

function decoded(text: string): string {
  return text.replace(/%([0-9a-fA-F]{2})/g, (_all, code: string) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  );
}

function isMatch(matcher: HeaderMatcher, value: string | undefined): boolean {
  if (value === undefined) return false;
  if (matcher.present_match === true) return true;
  const { exact, prefix } = matcher.string_match ?? {};
  return exact === undefined ? value.startsWith(prefix ?? "") : value === exact;
}
