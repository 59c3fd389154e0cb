import { create, type JsonObject as MessageJson, toBinary } from "@bufbuild/protobuf";
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
import type { Verdict } from "../../core/limits/verdict.js";
import type { PreparedQuery } from "../../decide/rate-limit/prepared-query.js";
import { ReportedRules, refusingRule } from "../../decide/rate-limit/refusing-rule.js";
import { type HeaderValue, HeaderValueSchema } from "../../gen/envoy/config/core/v3/base_pb.js";
import {
  type RateLimitResponse,
  RateLimitResponseSchema,
} from "../../gen/envoy/service/ratelimit/v3/rls_pb.js";
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

type Extras = Partial<
  Pick<
    RateLimitResponse,
    "responseHeadersToAdd" | "requestHeadersToAdd" | "rawBody" | "dynamicMetadata"
  >
>;

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
  mayAdd({ isStyled }: PreparedQuery, { isDenied }: Verdict): boolean {
    const { headerNames, requestHeaderNames, hasDynamicMetadata, tellsWait } = this.#options;
    const isNamed = headerNames !== undefined || requestHeaderNames !== undefined;
    return isStyled || isNamed || hasDynamicMetadata || (tellsWait && isDenied);
  }

  /** The fields of one response: those that it has. */
  fields(call: RespondedCall): Extras {
    const { headers, requestHeaders, body } = this.#limitResponse(call);
    const asked = this.needsAsked ? call.asked : undefined;
    const reportedRule = this.#reportedRule(call);
    const allHeaders = [...headers, ...namingHeaders(reportedRule)];
    const metadata = {
      ...(asked !== undefined && dynamicMetadata(call, asked)),
      ...namingMetadata(reportedRule),
    };
    return {
      ...(allHeaders.length > 0 && { responseHeadersToAdd: allHeaders.map(toHeaderValue) }),
      ...(requestHeaders.length > 0 && { requestHeadersToAdd: requestHeaders.map(toHeaderValue) }),
      ...(body !== undefined && { rawBody: Buffer.from(body, "utf8") }),
      ...(Object.keys(metadata).length > 0 && { dynamicMetadata: metadata }),
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
    const headers = namingHeaders(reportedRule).map(toHeaderValue);
    const metadata = namingMetadata(reportedRule);
    const message = create(RateLimitResponseSchema, {
      responseHeadersToAdd: headers,
      ...(Object.keys(metadata).length > 0 && { dynamicMetadata: metadata }),
    });
    const bytes = toBinary(RateLimitResponseSchema, message);
    this.#namings.set(reportedRule, bytes);
    return bytes;
  }

  /**
   * The same fields as bytes, to be put behind a response's own: a message is the merge of its
   * parts. Source: protobuf.dev/programming-guides/encoding, "Last One Wins".
   */
  encode(call: RespondedCall): Uint8Array {
    return toBinary(RateLimitResponseSchema, create(RateLimitResponseSchema, this.fields(call)));
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

function namingMetadata(reportedRule: ReportedRule | undefined): MessageJson {
  return reportedRule?.disclosure.metadata === true
    ? Object.fromEntries(reportedRuleFields(reportedRule))
    : {};
}

function toHeaderValue({ name, value }: Header): HeaderValue {
  return create(HeaderValueSchema, { key: name, value });
}

/**
 * What was asked, and what the rules that let it pass want to say.
 *
 * Source: envoyproxy/ratelimit, RESPONSE_DYNAMIC_METADATA.
 */
function dynamicMetadata(call: RespondedCall, asked: SentRequest): MessageJson {
  const { domain, descriptors, hitsAddend } = asked;
  // The library takes nothing that is frozen.
  const metadata: MessageJson = JSON.parse(JSON.stringify(passedMetadata(call)));
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
