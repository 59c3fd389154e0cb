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

/** What the process adds to every response. */
export interface ResponseExtrasOptions {
  /** Headers of the tightest limit, where its rule says nothing of them; undefined for none. */
  readonly headerNames: LimitHeaderNames | undefined;
  /** Headers of the tightest limit on the request that goes to the upstream; absent: none. */
  readonly requestHeaderNames?: LimitHeaderNames | undefined;
  /** Whether refusals carry `retry-after`, unless the rule wants no headers. */
  readonly tellsWait: boolean;
  /** Whether responses repeat what was asked, and the rules' `metadata`, for later filters. */
  readonly hasDynamicMetadata: boolean;
}

interface RespondedCall {
  readonly prepared: PreparedQuery;
  readonly verdict: Verdict;
  /** As it was asked; needed for dynamic metadata. */
  readonly asked: SentRequest | undefined;
}

/** What one response carries beside its statuses. */
export interface Extras {
  readonly headers: readonly Header[];
  /** Of the request that goes to the upstream. */
  readonly requestHeaders: readonly Header[];
  readonly body?: string | undefined;
  readonly metadata: JsonObject;
}

/** What responses carry beside their statuses. Most carry nothing, and that costs nothing. */
export class ResponseExtras {
  readonly #options: ResponseExtrasOptions;
  readonly #reportedRules = new ReportedRules();
  readonly #namings = new WeakMap<ReportedRule, Uint8Array>();

  constructor(options: ResponseExtrasOptions) {
    this.#options = options;
  }

  /** Whether what a call asked is needed to answer it. */
  get needsAsked(): boolean {
    return this.#options.hasDynamicMetadata;
  }

  /** Whether the answer to such a call may carry anything; the others are not worth a look. */
  mayAdd({ isStyled }: PreparedQuery, { isDenied, marks }: Verdict): boolean {
    if (marks !== undefined) return true;
    const { headerNames, requestHeaderNames, hasDynamicMetadata, tellsWait } = this.#options;
    const isNamed = headerNames !== undefined || requestHeaderNames !== undefined;
    return isStyled || isNamed || hasDynamicMetadata || (tellsWait && isDenied);
  }

  /** What one response carries. */
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
      // Envoy does not choose the route again: a fallback's header is for whoever reads it later.
      requestHeaders: [...requestHeaders, ...(marks === undefined ? [] : markFields(marks))],
      body,
      metadata,
    };
  }

  /**
   * What names the rule of a refusal, as bytes that are made once a rule: all that the response to
   * a call has beside its statuses where `mayAdd` says that there is nothing else.
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
   * The same as bytes, to be put behind a response's own: a message is the merge of its
   * parts. Source: protobuf.dev/programming-guides/encoding, "Last One Wins".
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
 * What was asked, and what the rules that let it pass want to say.
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

/** Of the rules whose limits were not over: the first one's word counts, maps are merged. */
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
