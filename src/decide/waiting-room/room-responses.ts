import type { Refusal } from "../../core/admission/exchange-messages.js";
import { reasonHeader } from "../../core/admission/refusal.js";
import { encodeBase64 } from "../../core/base/base64.js";
import { grpcStatuses } from "../../core/base/grpc-status.js";
import type { HeaderField } from "../../core/base/header-field.js";
import { httpStatuses } from "../../core/base/http-status.js";
import { encodeRetryStatus } from "../../core/base/rpc-status.js";
import { snakeCase } from "../../core/base/text.js";
import type { PageState } from "../../core/waiting-room/page-fields.js";
import type { RoomPolicy } from "../../policy/waiting-rooms/room-policy.js";
import { pageScript } from "./page-script.js";
import { pageStyle } from "./page-template.js";
import { type PageFacts, RoomPages } from "./room-page.js";
import type { RoomRequestKind } from "./room-request.js";
import type { RoomStanding } from "./room-standing.js";

/** Dependencies of `RoomResponses`. */
export interface RoomResponsesParts {
  /** Uniform in [0, 1). */
  readonly draw: () => number;
  /** Milliseconds since 1970. */
  readonly nowMs: () => number;
  /** A SHA-256 in Base64. */
  readonly hash: (text: string) => string;
}

/** Content and recipient of a response. */
export interface VisitorResponse {
  readonly standing: RoomStanding;
  readonly kind: RoomRequestKind;
  /** The header `accept-language`. */
  readonly language: string | undefined;
  /** Undefined: the caller keeps its cookie. */
  readonly cookie: HeaderField | undefined;
}

/** The header that determines the language of a response. */
export const languageHeader = "accept-language";

/** After this many refresh intervals, a visitor who was turned away tries again. */
const fullRefreshes = 3;

/** Refresh intervals are spread by this fraction, in both directions. */
const spreadRatio = 0.1;

/** Responses to visitors of one room in place of the service: a page, JSON or a gRPC status. */
export class RoomResponses {
  readonly #parts: RoomResponsesParts;
  readonly #policy: RoomPolicy;
  readonly #pages: RoomPages;
  readonly #securityPolicy: string;

  constructor(parts: RoomResponsesParts, policy: RoomPolicy) {
    this.#parts = parts;
    this.#policy = policy;
    this.#pages = new RoomPages(policy);
    this.#securityPolicy = securityPolicyOf(policy, parts.hash);
  }

  /** Answers a request that is admitted later or not at all. */
  kept(answer: VisitorResponse): Refusal {
    const { standing, kind } = answer;
    const refreshSeconds = this.#refreshSeconds(standing.state);
    if (kind.wants === "grpc") return this.#grpc(answer, refreshSeconds);
    if (kind.wants === "json" || kind.isPrefetch) {
      const status = httpStatuses.serviceUnavailable;
      return this.#json(answer, { status, refreshSeconds, fields: {} });
    }
    const facts: PageFacts = {
      standing,
      refreshSeconds,
      nowMs: this.#parts.nowMs(),
      isUnsafe: !kind.isSafe,
    };
    return this.#page(answer, facts);
  }

  /**
   * Returns the response of an endpoint to a visitor.
   *
   * @param isForPage whether the page's script asks, which shows texts
   */
  endpoint(answer: VisitorResponse, isForPage: boolean): Refusal {
    const { standing, language } = answer;
    const refreshSeconds = this.#refreshSeconds(standing.state);
    const facts = { standing, refreshSeconds, nowMs: this.#parts.nowMs(), isUnsafe: false };
    const fields = isForPage ? { page: this.#pages.values(language, facts) } : {};
    return this.#json(answer, { status: httpStatuses.ok, refreshSeconds, fields });
  }

  /** Returns a page that a browser shows once, after a form of the waiting room. */
  final(answer: VisitorResponse): Refusal {
    const refreshSeconds = this.#refreshSeconds(answer.standing.state);
    const { standing } = answer;
    const facts = { standing, refreshSeconds, nowMs: this.#parts.nowMs(), isUnsafe: true };
    return { ...this.#page(answer, facts), status: httpStatuses.ok };
  }

  /** Answers a request for an unknown endpoint, or one that the endpoint does not allow. */
  noEndpoint(status: number): Refusal {
    const headers = [...unstored, { name: "content-type", value: jsonType }];
    if (status === httpStatuses.methodNotAllowed) headers.push({ name: "allow", value: "POST" });
    return {
      status,
      grpcStatus: undefined,
      headers,
      body: "{}",
      details: detailsOf("unknownEndpoint"),
    };
  }

  #page({ kind, language, cookie, standing }: VisitorResponse, facts: PageFacts): Refusal {
    const { refreshSeconds, isUnsafe } = facts;
    const refresh = [
      { name: "refresh", value: String(refreshSeconds) },
      { name: "retry-after", value: String(refreshSeconds) },
    ];
    return {
      status: isUnsafe ? httpStatuses.serviceUnavailable : this.#policy.page.status,
      grpcStatus: undefined,
      headers: [
        ...unstored,
        { name: "content-type", value: "text/html; charset=utf-8" },
        { name: "content-security-policy", value: this.#securityPolicy },
        { name: "referrer-policy", value: "same-origin" },
        ...(isUnsafe ? [] : refresh),
        ...(cookie === undefined ? [] : [cookie]),
      ],
      body: kind.isHead ? "" : this.#pages.html(language, facts),
      details: detailsOf(standing.state),
    };
  }

  #json(
    { standing, kind, cookie }: VisitorResponse,
    { status, refreshSeconds, fields }: JsonAnswer,
  ): Refusal {
    const body = { ...this.#jsonFields(standing, refreshSeconds), ...fields };
    return {
      status,
      grpcStatus: undefined,
      headers: [
        ...unstored,
        { name: "content-type", value: jsonType },
        { name: "retry-after", value: String(refreshSeconds) },
        ...(cookie === undefined ? [] : [cookie]),
      ],
      body: kind.isHead ? "" : JSON.stringify(body),
      details: detailsOf(standing.state),
    };
  }

  /** `waitTime` is in minutes, as clients of other waiting rooms expect, next to seconds. */
  #jsonFields(standing: RoomStanding, refreshSeconds: number): Readonly<Record<string, unknown>> {
    const { state, aheadCount, estimate, opensInSeconds } = standing;
    return {
      inWaitingRoom: state !== "entered" && state !== "left",
      state,
      waitTimeKnown: estimate !== undefined,
      ...(estimate === undefined
        ? {}
        : {
            waitTime: Math.ceil(estimate.middleSeconds / 60),
            waitSeconds: {
              low: Math.floor(estimate.lowSeconds),
              middle: Math.round(estimate.middleSeconds),
              high: Math.ceil(estimate.highSeconds),
              confidence: 0.9,
            },
          }),
      ...(aheadCount === undefined ? {} : { position: aheadCount + 1, ahead: aheadCount }),
      ...(opensInSeconds === undefined ? {} : { opensInSeconds: Math.ceil(opensInSeconds) }),
      queueIsFull: state === "full",
      queueAll: this.#policy.queueAll,
      refreshIntervalSeconds: refreshSeconds,
    };
  }

  #grpc({ standing, cookie }: VisitorResponse, refreshSeconds: number): Refusal {
    const code = grpcStatuses.unavailable;
    const message = "The service has a waiting room, and it is not your turn.";
    const status = { code, message, retrySeconds: refreshSeconds };
    const detail = encodeBase64(encodeRetryStatus(status));
    return {
      status: httpStatuses.serviceUnavailable,
      grpcStatus: code,
      headers: [
        { name: "retry-after", value: String(refreshSeconds) },
        { name: reasonHeader, value: message },
        { name: "grpc-status-details-bin", value: detail },
        ...(cookie === undefined ? [] : [cookie]),
      ],
      // Envoy uses the body of a response to a gRPC request as its grpc-message.
      body: message,
      details: detailsOf(standing.state),
    };
  }

  #refreshSeconds(state: PageState): number {
    const refreshes = state === "full" ? fullRefreshes : 1;
    const spread = 1 + spreadRatio * (2 * this.#parts.draw() - 1);
    return Math.max(1, Math.round((refreshes * this.#policy.refreshMs * spread) / 1_000));
  }
}

interface JsonAnswer {
  readonly status: number;
  readonly refreshSeconds: number;
  readonly fields: Readonly<Record<string, unknown>>;
}

const jsonType = "application/json";

/** No cache stores it or gives it to others. Source: RFC 9111, section 5.2.2.5. */
const unstored: readonly HeaderField[] = [
  { name: "cache-control", value: "no-store" },
  { name: "vary", value: "accept, accept-language, cookie, sec-fetch-mode" },
  { name: "x-content-type-options", value: "nosniff" },
];

/** Example: `headgate_waiting_room_pre_queue`. */
function detailsOf(state: string): string {
  return `headgate_waiting_room_${snakeCase(state)}`;
}

/**
 * The built-in page may run its own script and nothing else. A template is the operator's text and
 * may load anything, but no other site may put it into a frame.
 *
 * Source: Content Security Policy Level 3.
 */
function securityPolicyOf({ page }: RoomPolicy, hash: RoomResponsesParts["hash"]): string {
  const common = "base-uri 'none'; frame-ancestors 'self'; object-src 'none'";
  if (page.template !== undefined) return common;
  const script = `script-src 'sha256-${hash(pageScript)}'; worker-src blob:`;
  const style = `style-src 'sha256-${hash(pageStyle)}'`;
  const own = `connect-src 'self'; form-action 'self'`;
  return `default-src 'none'; ${script}; ${style}; ${own}; ${common}`;
}
