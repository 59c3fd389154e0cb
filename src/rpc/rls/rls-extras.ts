import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { isJsonObject, type JsonObject } from "../../core/base/json.js";
import {
  type Header,
  type LimitHeaderNames,
  type LimitResponse,
  limitResponse,
  type StyledStatus,
} from "../../core/limits/limit-headers.js";
import {
  type ReportedRule,
  reportedRuleFields,
  reportedRuleText,
  ruleHeader,
} from "../../core/limits/reported-rule.js";
import { markFields } from "../../core/limits/request-marks.js";
import type { Verdict } from "../../core/limits/verdict.js";
import type { PreparedQuery } from "../../decide/rate-limit/prepared-query.js";
import { ReportedRules, refusingRule } from "../../decide/rate-limit/refusing-rule.js";
import { encodeStruct } from "../codec/struct-encoder.js";
import { carriedLimitText, type SentRequest } from "./rls-request.js";

/** Process-wide settings of `ResponseExtras`. */
export interface ResponseExtrasOptions {
  /** Headers of the tightest limit, if its rule does not set `headers`. Undefined: none. */
  readonly headerNames: LimitHeaderNames | undefined;
  /** Headers of the tightest limit on the request to the upstream. Absent: none. */
  readonly requestHeaderNames?: LimitHeaderNames | undefined;
  /** Whether denials carry `retry-after`, unless the rule disables headers. */
  readonly tellsWait: boolean;
  /** Whether responses repeat the request and the rules' `metadata`, for later filters. */
  readonly hasDynamicMetadata: boolean;
}

interface RespondedCall {
  readonly prepared: PreparedQuery;
  readonly verdict: Verdict;
  /** The request as it was sent. Needed for dynamic metadata. */
  readonly asked: SentRequest | undefined;
}

/** The parts of one response besides its statuses. */
export interface Extras {
  readonly headers: readonly Header[];
  /** Headers of the request to the upstream. */
  readonly requestHeaders: readonly Header[];
  readonly body?: string | undefined;
  readonly metadata: JsonObject;
}

/** Creates the parts of responses besides their statuses. Most have none, which costs nothing. */
export class ResponseExtras {
  readonly #options: ResponseExtrasOptions;
  readonly #reportedRules = new ReportedRules();
  readonly #namings = new WeakMap<ReportedRule, Uint8Array>();

  constructor(options: ResponseExtrasOptions) {
    this.#options = options;
  }

  /** Whether the request is needed to create its response. */
  get needsAsked(): boolean {
    return this.#options.hasDynamicMetadata;
  }

  /** Whether the response may have extras other than those of `naming`, so that `of` is needed. */
  mayAdd({ isStyled }: PreparedQuery, { isDenied, marks }: Verdict): boolean {
    if (marks !== undefined) return true;
    const { headerNames, requestHeaderNames, hasDynamicMetadata, tellsWait } = this.#options;
    const isNamed = headerNames !== undefined || requestHeaderNames !== undefined;
    return isStyled || isNamed || hasDynamicMetadata || (tellsWait && isDenied);
  }

  /** Returns the extras of one response. */
  of(call: RespondedCall): Extras {
    const { headers, requestHeaders, body } = this.#limitResponse(call);
    const { marks } = call.verdict;
    const asked = this.needsAsked ? call.asked : undefined;
    const reportedRule = this.#reportedRule(call);
    const metadata = {
      ...(asked !== undefined && dynamicMetadata(call, asked)),
      ...namingMetadata(reportedRule),
    };
    return {
      headers: [...headers, ...namingHeaders(reportedRule)],
      // Envoy does not select the route again: a fallback's header is for its later readers.
      requestHeaders: [...requestHeaders, ...(marks === undefined ? [] : markFields(marks))],
      body,
      metadata,
    };
  }

  /**
   * Returns the fields that name the rule of a denial, as bytes that are encoded once per rule. If
   * `mayAdd` is false, the response has no other extras.
   */
  naming(prepared: PreparedQuery, verdict: Verdict): Uint8Array | undefined {
    const reportedRule = this.#reportedRule({ prepared, verdict });
    if (reportedRule === undefined) return undefined;
    const known = this.#namings.get(reportedRule);
    if (known !== undefined) return known;
    const bytes = encodeExtras({
      headers: namingHeaders(reportedRule),
      requestHeaders: [],
      metadata: namingMetadata(reportedRule),
    });
    this.#namings.set(reportedRule, bytes);
    return bytes;
  }

  /**
   * Returns the extras as bytes to append to those of the response: concatenated messages are
   * merged. Source: protobuf.dev/programming-guides/encoding, "Last One Wins".
   */
  encode(call: RespondedCall): Uint8Array {
    return encodeExtras(this.of(call));
  }

  #reportedRule({ prepared, verdict }: Omit<RespondedCall, "asked">): ReportedRule | undefined {
    const refusing = verdict.isDenied ? refusingRule(prepared, verdict) : undefined;
    return refusing && this.#reportedRules.of(refusing);
  }

  #limitResponse({ prepared, verdict }: RespondedCall): LimitResponse {
    const statuses = verdict.statuses.map((status, i): StyledStatus => {
      const descriptor = prepared.descriptors[i];
      const rule = descriptor?.kind === "limited" ? descriptor.rule : undefined;
      return { status, label: rule?.label ?? "override", headers: rule?.headers, body: rule?.body };
    });
    return limitResponse(statuses, {
      isDenied: verdict.isDenied,
      names: this.#options.headerNames,
      requestNames: this.#options.requestHeaderNames,
      tellsWait: this.#options.tellsWait,
    });
  }
}

function namingHeaders(reportedRule: ReportedRule | undefined): readonly Header[] {
  return reportedRule?.disclosure.header === true
    ? [{ name: ruleHeader, value: reportedRuleText(reportedRule) }]
    : [];
}

function namingMetadata(reportedRule: ReportedRule | undefined): JsonObject {
  return reportedRule?.disclosure.metadata === true
    ? Object.fromEntries(reportedRuleFields(reportedRule))
    : {};
}

const { LengthDelimited } = WireType;

/** Source: envoy.service.ratelimit.v3.RateLimitResponse. */
function encodeExtras({ headers, requestHeaders, body, metadata }: Extras): Uint8Array {
  const writer = new BinaryWriter();
  for (const header of headers) writeHeader(writer.tag(3, LengthDelimited), header);
  for (const header of requestHeaders) writeHeader(writer.tag(4, LengthDelimited), header);
  if (body !== undefined) writer.tag(5, LengthDelimited).string(body);
  if (Object.keys(metadata).length > 0) {
    writer.tag(6, LengthDelimited).bytes(encodeStruct(metadata));
  }
  return writer.finish();
}

/** Source: envoy.config.core.v3.HeaderValue. */
function writeHeader(writer: BinaryWriter, { name, value }: Header): void {
  writer.fork();
  writer.tag(1, LengthDelimited).string(name).tag(2, LengthDelimited).string(value);
  writer.join();
}

/**
 * Returns the request, and the `metadata` of the rules that allowed it.
 *
 * Source: envoyproxy/ratelimit, RESPONSE_DYNAMIC_METADATA.
 */
function dynamicMetadata(call: RespondedCall, asked: SentRequest): JsonObject {
  const { domain, descriptors, hitsAddend } = asked;
  const metadata = passedMetadata(call);
  return {
    domain: domain.toWellFormed(),
    descriptors: descriptors.map(({ entries, limit, ownHits }) => ({
      entries: entries.map(({ key, value }) => `${key}=${value}`.toWellFormed()),
      ...(limit === undefined ? {} : { limit: carriedLimitText(limit) }),
      ...(ownHits === undefined ? {} : { hitsAddend: ownHits }),
    })),
    ...(hitsAddend === 0 ? {} : { hitsAddend }),
    ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
  };
}

/** Merges the `metadata` of rules whose limits are not over. Of two scalars, the first counts. */
function passedMetadata({ prepared, verdict }: RespondedCall): JsonObject {
  let merged: JsonObject = {};
  prepared.descriptors.forEach((descriptor, i) => {
    if (descriptor.kind === "unmatched" || verdict.statuses[i]?.isOver !== false) return;
    const { rule } = descriptor;
    if (rule?.metadata !== undefined) merged = merge(merged, rule.metadata);
  });
  return merged;
}

function merge(first: JsonObject, second: JsonObject): JsonObject {
  const merged = new Map(Object.entries(first));
  for (const [name, value] of Object.entries(second)) {
    const known = merged.get(name);
    if (known === undefined) merged.set(name, value);
    else if (isJsonObject(known) && isJsonObject(value)) merged.set(name, merge(known, value));
  }
  return Object.fromEntries(merged);
}
