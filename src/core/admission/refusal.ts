import { encodeBase64 } from "../base/base64.js";
import { grpcStatuses } from "../base/grpc-status.js";
import type { HeaderField } from "../base/header-field.js";
import { httpStatuses } from "../base/http-status.js";
import { problemJson, problemJsonType } from "../base/problem-json.js";
import { encodeRetryStatus } from "../base/rpc-status.js";
import { snakeCase } from "../base/text.js";
import type { RuleDisclosure } from "../limits/limit.js";
import {
  asciiHeaderText,
  defaultDisclosure,
  type ReportedRule,
  reportedRuleFields,
  reportedRuleText,
  ruleHeader,
} from "../limits/reported-rule.js";
import {
  metadataNamespace,
  type Refusal,
  type ReplyMetadata,
  type ScalarValue,
} from "./exchange-messages.js";

/** Settings of refusals. */
export interface RejectSettings {
  /** Minimum `retry-after`, in whole seconds from 1. */
  readonly retryAfterSecondsMin: number;
  /** Maximum jitter, as a share of `retry-after`; it is only added. */
  readonly retryAfterJitterRatio: number;
  /** HTTP status by cause, instead of the cause's default. */
  readonly statusByCause: Readonly<Partial<Record<RefusalCause, number>>>;
  /** Where refusals name the service and the cause. Absent: `defaultDisclosure`. */
  readonly disclosure?: RuleDisclosure;
}

/** Causes of refusals; also values of a metric's label. */
export const refusalCauses = [
  "rateLimit",
  "budget",
  "priority",
  "queueFull",
  "queueTimeout",
  "waitCap",
  "sigmoid",
  "concurrency",
  "load",
  "gate",
  "throttle",
  "deadline",
  "ownOverload",
] as const;

/** One of `refusalCauses`. */
export type RefusalCause = (typeof refusalCauses)[number];

/** What callers see of a cause. */
interface RefusalRow {
  /** HTTP status. */
  readonly status: number;
  /** gRPC status. */
  readonly grpcStatus: number;
  /** Text for a person: printable ASCII without data of the request. */
  readonly reason: string;
}

/** Source: RFC 6585 (429), RFC 9110 (503, 504); gRPC's status codes. */
const tooMany = {
  status: httpStatuses.tooManyRequests,
  grpcStatus: grpcStatuses.resourceExhausted,
} as const;
const unavailable = {
  status: httpStatuses.serviceUnavailable,
  grpcStatus: grpcStatuses.unavailable,
} as const;
const tooLate = {
  status: httpStatuses.gatewayTimeout,
  grpcStatus: grpcStatuses.deadlineExceeded,
} as const;

/**
 * All causes. 429 means that this caller or its class has used up its part, and 503 that the
 * service has no room for any request.
 */
export const refusalRows: Readonly<Record<RefusalCause, RefusalRow>> = {
  rateLimit: { ...tooMany, reason: "The rate limit is reached." },
  budget: { ...tooMany, reason: "A budget has no room for the request." },
  priority: {
    ...tooMany,
    reason: "The service is busy, and requests of this priority are refused first.",
  },
  queueFull: { ...tooMany, reason: "The service is busy, and its queue is full." },
  queueTimeout: {
    ...tooMany,
    reason: "The service is busy, and the request waited in its queue for too long.",
  },
  waitCap: { ...tooMany, reason: "The service is busy, and the wait would be too long." },
  sigmoid: {
    ...tooMany,
    reason: "The service is busy, and it refuses more requests as the wait grows.",
  },
  concurrency: {
    ...unavailable,
    reason: "The service has reached its limit of concurrent requests.",
  },
  load: { ...unavailable, reason: "The service is overloaded." },
  gate: { ...unavailable, reason: "The service is overloaded, and its gate is closed." },
  throttle: { ...unavailable, reason: "The service has refused many requests recently." },
  deadline: { ...tooLate, reason: "The remaining time is too short for a response." },
  ownOverload: { ...unavailable, reason: "The admission service itself is overloaded." },
};

/** Causes that more permits could have prevented. */
export const forWantOfRoom: ReadonlySet<RefusalCause> = new Set([
  "priority",
  "queueFull",
  "queueTimeout",
  "waitCap",
  "sigmoid",
  "concurrency",
  "gate",
]);

/** Response header with the reason of a refusal in words. */
export const reasonHeader = "x-headgate-reason";

/** Milliseconds until a gRPC client may retry. Source: gRPC proposal A6, "Pushback". */
const pushbackHeader = "grpc-retry-pushback-ms";

/** Data of a request that its refusal depends on. */
export interface RefusedRequest {
  /** Value of `:method`. */
  readonly method: string | undefined;
  /** Value of `content-type`. */
  readonly contentType: string | undefined;
}

interface RefusalQuestion {
  /** Name of the service in the policy. */
  readonly service: string;
  readonly cause: RefusalCause;
  /** The rule whose limit is reached; undefined for other causes, and if it is not known. */
  readonly reportedRule?: ReportedRule | undefined;
  /** The budget that has no room; absent for other causes. */
  readonly budget?: string | undefined;
  readonly request: RefusedRequest;
  /** Result of `retryAfterSeconds`. */
  readonly retrySeconds: number;
}

/**
 * Reports whether a request is gRPC: `application/grpc`, alone or with a suffix (`+proto`) or
 * parameters. gRPC-Web is another type, answered as HTTP unless Envoy has made gRPC of it before.
 *
 * Source: gRPC over HTTP2, "Content-Type".
 */
export function isGrpcRequest(contentType: string | undefined): boolean {
  return contentType !== undefined && /^application\/grpc(?:[+;]|$)/i.test(contentType);
}

/**
 * Returns the response to a refused request, by its cause. It contains no data of the request.
 *
 * If the policy allows it, dynamic metadata and a header name the service and the cause, or the
 * rule of a rate limit.
 *
 * An HTTP response has the status, `retry-after`, the reason in a header, and a body by RFC 9457,
 * except for HEAD. A gRPC response has the gRPC status with the reason as message, and the time
 * until a retry as `RetryInfo` and as pushback. It keeps the headers for proxies on the way.
 */
export function refusalOf(
  settings: Pick<RejectSettings, "statusByCause" | "disclosure">,
  question: RefusalQuestion,
): Refusal {
  const { cause, request, retrySeconds, budget } = question;
  const row = refusalRows[cause];
  const status = settings.statusByCause[cause] ?? row.status;
  const headers: readonly HeaderField[] = [
    { name: "retry-after", value: String(retrySeconds) },
    { name: reasonHeader, value: row.reason },
    ...namingHeaders(settings, question),
  ];
  const details = `headgate_${snakeCase(cause)}`;
  const metadata = namingMetadata(settings, question);
  const named = metadata === undefined ? { details } : { details, metadata };
  if (isGrpcRequest(request.contentType)) {
    const { grpcStatus, reason } = row;
    const value = encodeBase64(
      encodeRetryStatus({ code: grpcStatus, message: reason, retrySeconds }),
    );
    const detail: HeaderField = { name: "grpc-status-details-bin", value };
    const pushback: HeaderField = { name: pushbackHeader, value: String(retrySeconds * 1_000) };
    // Envoy uses the body of a response to a gRPC request as its grpc-message.
    return { status, grpcStatus, headers: [...headers, detail, pushback], body: reason, ...named };
  }
  const contentType: HeaderField = { name: "content-type", value: problemJsonType };
  const isHead = request.method === "HEAD";
  const detail = row.reason;
  // The body names the budget only if a header may name it, too.
  const isNamed = (settings.disclosure ?? defaultDisclosure).header;
  const naming = isNamed && budget !== undefined ? { budget } : {};
  const body = isHead ? "" : problemJson({ status, detail, cause, retrySeconds, ...naming });
  return { status, grpcStatus: undefined, headers: [...headers, contentType], body, ...named };
}

/**
 * Example: `x-headgate-rule: orders/queueTimeout`, `x-headgate-rule: llm/budget/team-month`, or the
 * rule of a rate limit.
 */
function namingHeaders(
  { disclosure = defaultDisclosure }: Pick<RejectSettings, "disclosure">,
  { service, cause, reportedRule, budget }: RefusalQuestion,
): readonly HeaderField[] {
  if (!(reportedRule?.disclosure ?? disclosure).header) return [];
  const names = budget === undefined ? [service, cause] : [service, cause, budget];
  const value =
    reportedRule === undefined ? asciiHeaderText(names.join("/")) : reportedRuleText(reportedRule);
  return [{ name: ruleHeader, value }];
}

function namingMetadata(
  { disclosure = defaultDisclosure }: Pick<RejectSettings, "disclosure">,
  { service, cause, reportedRule, budget }: RefusalQuestion,
): ReplyMetadata | undefined {
  const fields = new Map<string, ScalarValue>();
  if (disclosure.metadata) fields.set("service", service).set("cause", cause);
  if (disclosure.metadata && budget !== undefined) fields.set("budget", budget);
  if (reportedRule?.disclosure.metadata === true) {
    for (const [name, value] of reportedRuleFields(reportedRule)) fields.set(name, value);
  }
  return fields.size === 0 ? undefined : { namespace: metadataNamespace, fields };
}
