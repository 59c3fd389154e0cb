import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from "node:http";
import type { Cancel, Clock } from "../../core/base/clock.js";
import { httpStatuses } from "../../core/base/http-status.js";
import type { DecisionCounters } from "../../decide/rate-limit/counters.js";
import { Health } from "../../rpc/grpc/health.js";
import { toFailure } from "../../rpc/grpc/status.js";
import type { Decides } from "../../rpc/rls/json.js";
import { ResponseExtras } from "../../rpc/rls/rls-extras.js";
import { partialMsMax, schedulePartialEnd } from "../../wire/grpc/partial-bytes.js";
import { isoTime } from "../base/clock.js";
import type { Metrics } from "../base/metrics.js";
import { openMetricsType, prefersOpenMetrics, renderOpenMetrics } from "../base/open-metrics.js";
import type { Decisions } from "../decisions/decisions.js";
import type { Foundation } from "../foundation/foundation.js";
import type { Runtime } from "../foundation/runtime.js";
import { extrasOf } from "../options/decision-options.js";
import type { PolicyStatus } from "../policy/active-policy.js";

/**
 * Maximum size of a request's body, in bytes: three times Envoy's longest list. The body must be
 * complete within `partialMsMax`, so at most this much of each connection is kept.
 */
export const httpBodyBytesMax = 65_536;

/** Maximum size of a request's head, in bytes. */
export const httpHeadBytesMax = 16_384;

/** Longer than proxies in front keep idle connections, or they would use one that is closing. */
const keepAliveMs = 65_000;

/** Maximum times for a request's head and for all of it. The first must exceed `keepAliveMs`. */
const headMsMax = 66_000;
const requestMsMax = 75_000;

/** Data for the HTTP port and the monitoring port. */
export interface HttpParts {
  /** Whether `POST /json` decides. */
  readonly hasJson: boolean;
  readonly decider: Decides & { readonly isDegraded: boolean };
  /** Data in responses beside their statuses. */
  readonly extras: ResponseExtras;
  readonly counters: DecisionCounters;
  readonly clock: Clock;
  readonly health: Health;
  readonly metrics: Pick<Metrics, "contentType" | "render" | "families">;
  readonly policies: { readonly status: PolicyStatus };
  readonly storeKind: string;
  /** Whether the store is unreachable, even if no call uses it. */
  readonly isStoreAway: () => boolean;
  readonly onBug: (thrown: unknown) => void;
}

/** Creates the data that this process shows over HTTP. */
export function createHttpParts(
  { config, clock, metrics, onBug }: Runtime,
  { policies, opened }: Pick<Foundation, "policies" | "opened">,
  { decider, counters }: Decisions,
): HttpParts {
  return {
    hasJson: config.httpJson && config.tls?.clientAuthority === undefined,
    decider,
    extras: new ResponseExtras(extrasOf(config)),
    counters,
    clock,
    health: new Health(),
    metrics,
    policies: policies.feed,
    storeKind: opened.kind,
    isStoreAway: opened.isAway,
    onBug,
  };
}

/** Creates the HTTP server: health, readiness, metrics, JSON decisions. It does not listen yet. */
export function createHttpServer(parts: HttpParts): Server {
  return createRoutedServer(new Map([...monitoringRoutes, ["/json", jsonRoute]]), parts);
}

/**
 * Creates a server of health, readiness and metrics without decisions, so that a NetworkPolicy can
 * admit probes and scrapers, but no other callers. It does not listen yet.
 */
export function createMonitoringServer(parts: HttpParts): Server {
  return createRoutedServer(monitoringRoutes, parts);
}

function createRoutedServer(routes: Routes, parts: HttpParts): Server {
  return createServer(
    {
      keepAliveTimeout: keepAliveMs,
      headersTimeout: headMsMax,
      requestTimeout: requestMsMax,
      connectionsCheckingInterval: 5_000,
      maxHeaderSize: httpHeadBytesMax,
    },
    createHttpListener(routes, parts),
  );
}

interface Route {
  readonly method: "GET" | "POST";
  readonly answer: (request: IncomingMessage, parts: HttpParts) => Promise<Answer>;
}

/** An HTTP response. */
interface Answer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>>;
}

type Routes = ReadonlyMap<string, Route>;

const monitoringRoutes: Routes = new Map([
  ["/healthcheck", { method: "GET", answer: answerHealthcheck }],
  ["/livez", { method: "GET", answer: async () => text(httpStatuses.ok, "OK") }],
  ["/readyz", { method: "GET", answer: answerReadiness }],
  ["/metrics", { method: "GET", answer: answerMetrics }],
] satisfies readonly (readonly [string, Route])[]);

const jsonRoute: Route = { method: "POST", answer: answerDecision };

/** Creates a listener that answers requests. It never throws, whatever they contain. */
function createHttpListener(routes: Routes, parts: HttpParts): RequestListener {
  return (request, response) => {
    // A client that leaves early is not an error of this process.
    request.on("error", () => {});
    response.on("error", () => {});
    answer(request, routes, parts)
      .catch((thrown: unknown) => {
        const { httpStatus, message, code } = toFailure(thrown);
        if (code === "INTERNAL") parts.onBug(thrown);
        return json(httpStatus, { code, message });
      })
      .then((ready) => {
        // While stopping, each connection ends with its next response instead of being cut later.
        if (!parts.health.isServing) response.shouldKeepAlive = false;
        send(request, response, ready);
      })
      .catch((thrown: unknown) => parts.onBug(thrown));
  };
}

async function answer(request: IncomingMessage, routes: Routes, parts: HttpParts): Promise<Answer> {
  const path = (request.url ?? "").split("?", 1)[0] ?? "";
  const route = routes.get(path);
  if (route === undefined) {
    return text(httpStatuses.notFound, `Not found. Available: ${[...routes.keys()].join(", ")}.`);
  }
  // Node itself leaves out the body of a response to HEAD.
  const method = request.method === "HEAD" ? "GET" : request.method;
  if (method !== route.method) {
    const refusal = text(httpStatuses.methodNotAllowed, `Method not allowed; use ${route.method}.`);
    return { ...refusal, headers: { allow: route.method } };
  }
  return route.answer(request, parts);
}

/** Source: envoyproxy/ratelimit answers 500 here while it stops. */
async function answerHealthcheck(_: IncomingMessage, { health }: HttpParts): Promise<Answer> {
  return health.isServing
    ? text(httpStatuses.ok, "OK")
    : text(httpStatuses.internalServerError, "NOT_SERVING");
}

/** An unreachable store does not make this replica useless: it stays ready, but reports it. */
async function answerReadiness(_: IncomingMessage, parts: HttpParts): Promise<Answer> {
  const { health, policies, decider, storeKind, isStoreAway } = parts;
  const { status: policy } = policies;
  const { version, domainCount, ruleCount, limitCount, serviceCount, roomCount, budgetCount } =
    policy;
  const { lastProblem, loadedEpochUs, controlPlane } = policy;
  const isStoreOut = decider.isDegraded || isStoreAway();
  const isCutOff = controlPlane?.isConnected === false;
  const isDegraded = isStoreOut || isCutOff || lastProblem !== undefined;
  const isReady = health.isServing && version !== undefined;
  const isWaiting = version === undefined || (!health.isServing && domainCount === 0);
  const otherStatus = isWaiting ? "waiting for a policy" : "stopping";
  return json(isReady ? httpStatuses.ok : httpStatuses.serviceUnavailable, {
    status: isReady ? (isDegraded ? "degraded" : "ready") : otherStatus,
    policy: {
      version,
      domains: domainCount,
      rules: ruleCount,
      limits: limitCount,
      services: serviceCount,
      waitingRooms: roomCount,
      budgets: budgetCount,
      loadedAt: loadedEpochUs === undefined ? undefined : isoTime(loadedEpochUs),
      lastReloadProblem: lastProblem,
      controlPlane,
    },
    store: { kind: storeKind, state: isStoreOut ? "unavailable" : "ok" },
  });
}

async function answerMetrics(
  { headers }: IncomingMessage,
  { metrics }: HttpParts,
): Promise<Answer> {
  if (prefersOpenMetrics(headers.accept ?? "")) {
    return {
      status: httpStatuses.ok,
      contentType: openMetricsType,
      body: await renderOpenMetrics(metrics.families()),
    };
  }
  return {
    status: httpStatuses.ok,
    contentType: metrics.contentType,
    body: await metrics.render(),
  };
}

async function answerDecision(request: IncomingMessage, parts: HttpParts): Promise<Answer> {
  if (!parts.hasJson) {
    const why = "HEADGATE_JSON is false, or gRPC clients need certificates. Use gRPC.";
    return text(httpStatuses.forbidden, `POST /json is off: ${why}`);
  }
  const body = await readBody(request, parts.clock);
  if (typeof body !== "string") return body;
  // Not loaded at the start: only JSON needs the library and its descriptors of Envoy's API.
  const { answerJson } = await import("../../rpc/rls/json.js");
  const { isDenied, body: answered } = await answerJson(body, parts);
  return {
    status: isDenied ? httpStatuses.tooManyRequests : httpStatuses.ok,
    contentType: jsonType,
    body: answered,
  };
}

/** Returns the whole body as text, or the response to one that is too large or too slow. */
async function readBody(request: IncomingMessage, clock: Clock): Promise<string | Answer> {
  const tooLarge = json(httpStatuses.contentTooLarge, {
    message: `The body is larger than ${httpBodyBytesMax} bytes.`,
  });
  if (Number(request.headers["content-length"] ?? 0) > httpBodyBytesMax) return tooLarge;
  const chunks: Buffer[] = [];
  let size = 0;
  let cancel: Cancel = () => {};
  return new Promise<string | Answer>((resolve) => {
    const refuse = (answer: Answer): void => {
      request.pause();
      resolve(answer);
    };
    cancel = schedulePartialEnd(clock, () => {
      refuse(
        json(httpStatuses.requestTimeout, {
          message: `The body did not arrive within ${partialMsMax / 1_000} s.`,
        }),
      );
    });
    request.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size > httpBodyBytesMax) refuse(tooLarge);
      else chunks.push(chunk);
    });
    request.on("end", () => resolve(Buffer.concat(chunks).toString("utf8")));
    // It ended early: no client reads the response, so any will do.
    request.on("close", () => resolve(""));
  }).finally(() => cancel());
}

function send(request: IncomingMessage, response: ServerResponse, ready: Answer): void {
  if (response.destroyed) return;
  // The unread rest of a body must not be taken for the next request.
  const isLeft = !request.complete;
  if (isLeft) response.shouldKeepAlive = false;
  response.writeHead(ready.status, {
    "content-type": ready.contentType,
    "content-length": Buffer.byteLength(ready.body),
    "x-content-type-options": "nosniff",
    ...ready.headers,
  });
  response.end(ready.body, () => {
    if (isLeft) request.destroy();
  });
}

const jsonType = "application/json";

function json(status: number, body: unknown): Answer {
  return { status, contentType: jsonType, body: `${JSON.stringify(body)}\n` };
}

function text(status: number, body: string): Answer {
  return { status, contentType: "text/plain; charset=utf-8", body: `${body}\n` };
}
