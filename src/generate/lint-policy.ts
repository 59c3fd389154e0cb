import { ConditionCompiler } from "../policy/cel/cel.js";
import {
  headersKibReadMax,
  requestBytesBounds,
  requestBytesFor,
} from "../policy/cel/request-bytes.js";
import { quoteText } from "../policy/problems/problem.js";
import type { QuotaPolicy } from "../policy/quotas/quota-policy.js";
import type { ServicePolicy } from "../policy/services/service-policy.js";
import { type RatedId, rated } from "./base/generate-problems.js";
import type { GeneratedPolicy, GenerateProblem, TargetProblem } from "./base/generator.js";
import { knowsPriorities } from "./envoy/http/priority-header.js";
import { lintPaths } from "./lint-paths.js";

/** Warns about settings that are valid, but that probably do not mean what is intended. */
export function lintPolicy(policy: GeneratedPolicy): readonly GenerateProblem[] {
  const found = [
    ...policy.services.flatMap(lintService),
    ...policy.services.flatMap((service) => lintQuotas(service, policy.quotas)),
    ...lintStatedLatency(policy.services),
    ...lintPaths(policy),
    ...lintRooms(policy),
    ...lintRequestHeaders(policy),
    ...policy.services.flatMap((service) => lintPriorityHeader(service, policy) ?? []),
  ];
  return found.map(rated);
}

/** If a call and a quota share a limit, it is charged twice for the same requests. */
function lintQuotas(
  service: ServicePolicy,
  quotas: readonly QuotaPolicy[],
): readonly TargetProblem[] {
  const { rateLimit } = service;
  const asked = new Set(rateLimit?.descriptors.map(({ parts }) => JSON.stringify(parts)));
  const twice = quotas.find(({ services, domain, bucket }) => {
    const isOfService = services === undefined || services.includes(service.name);
    // Parts that read other headers may belong to other requests.
    const parts = bucket.map(({ fallback: _, ...part }) => part);
    return isOfService && domain === rateLimit?.domain && asked.has(JSON.stringify(parts));
  });
  if (twice === undefined) return [];
  return [
    placed(service, ["rateLimit", "descriptors"], {
      id: "HG439",
      message: `the quota ${quoteText(twice.name)} charges the same limit for these requests`,
      hint: "remove the descriptor and keep the quota, or limit the quota to the other services",
    }),
  ];
}

/** By default, Envoys let requests pass if they receive no answer in time. */
function lintRooms({ waitingRooms, proxies }: GeneratedPolicy): readonly TargetProblem[] {
  const held = waitingRooms.find(({ onStoreFailure }) => onStoreFailure !== "open");
  if (held === undefined || proxies.headgate.deniesWithoutAnswer) return [];
  return [
    {
      id: "HG445",
      spot: { service: undefined, path: ["waitingRooms", held.name, "onStoreFailure"] },
      message: `Envoys let everybody past ${quoteText(held.name)} while Headgate does not answer`,
      hint: "proxies: {headgate: {failureModeDeny: true}}, or onStoreFailure: open",
    },
  ];
}

/** Headgate refuses requests that Envoy accepts if their message is larger than what it reads. */
function lintRequestHeaders({ proxies }: GeneratedPolicy): readonly TargetProblem[] {
  const headersKib = proxies.listener.requestHeadersKibMax;
  const bytesMax = requestBytesFor(headersKib);
  if (headersKib === undefined || bytesMax === requestBytesBounds.defaultValue) return [];
  const isHeld = headersKib <= headersKibReadMax;
  const headers = `${headersKib} KiB of headers`;
  return [
    {
      id: "HG444",
      spot: { service: undefined, path: ["proxies", "listener", "maxRequestHeadersKb"] },
      message: `Headgate refuses requests with ${headers}, which it does not read`,
      hint: isHeld
        ? `set HEADGATE_REQUEST_BYTES_MAX=${bytesMax}, as \`generate kubernetes\` does`
        : `at most ${headersKibReadMax}, with HEADGATE_REQUEST_BYTES_MAX=${bytesMax}`,
    },
  ];
}

function lintService(service: ServicePolicy): readonly TargetProblem[] {
  return [
    lintRateLimit(service),
    lintBreakers(service),
    lintEjections(service),
    lintRetries(service),
    lintWaitCurve(service),
  ].filter((problem) => problem !== undefined);
}

function lintRateLimit(service: ServicePolicy): TargetProblem | undefined {
  const { rateLimit, concurrency, admission, adaptiveConcurrency, circuitBreakers } = service;
  const isBounded =
    concurrency !== undefined ||
    admission?.maxInFlight !== undefined ||
    adaptiveConcurrency !== undefined ||
    circuitBreakers.requestsMax !== "auto";
  if (rateLimit === undefined || isBounded) return undefined;
  return placed(service, ["rateLimit"], {
    id: "HG422",
    message: `nothing limits the requests in flight of ${quoteText(service.name)}`,
    hint: "add concurrency, admission.maxInFlight or circuitBreakers.maxRequests",
  });
}

function lintBreakers(service: ServicePolicy): TargetProblem | undefined {
  if (service.outlierDetection !== undefined) return undefined;
  return placed(service, ["outlierDetection"], {
    id: "HG423",
    message: `a failing host of ${quoteText(service.name)} is never ejected`,
    hint: "keep the defaults of outlierDetection",
  });
}

function lintEjections(service: ServicePolicy): TargetProblem | undefined {
  if (service.outlierDetection?.ejectionPercentMax !== 100) return undefined;
  return placed(service, ["outlierDetection", "maxEjectionPercent"], {
    id: "HG421",
    message: `a fault that all hosts of ${quoteText(service.name)} share ejects all of them`,
    hint: "set less than 100, such as 50",
  });
}

/** Retry conditions that match a refusal. */
const refusals: ReadonlySet<string> = new Set([
  "gatewayError",
  "5xx",
  "retriableStatus",
  "rateLimited",
]);

function lintRetries(service: ServicePolicy): TargetProblem | undefined {
  const { retries, circuitBreakers } = service;
  const repeated = retries?.on.find((condition) => refusals.has(condition));
  if (repeated === undefined || circuitBreakers.retryBudget !== undefined) return undefined;
  return placed(service, ["retries", "retryOn"], {
    id: "HG424",
    message: `${quoteText(repeated)} retries refused requests without a budget`,
    hint: "remove `retryBudget: off`, or retry only requests that have certainly not started",
  });
}

/** Share of requests that a curve may refuse while nothing waits, before the lint warns. */
const restRatioMax = 0.01;

/** A curve that is too flat for its midpoint refuses requests while nothing waits. */
function lintWaitCurve(service: ServicePolicy): TargetProblem | undefined {
  const { sigmoid } = service.admission?.estimatedWait ?? {};
  // The service time is not known here.
  if (sigmoid?.midpoint.kind !== "duration") return undefined;
  const midpointSeconds = sigmoid.midpoint.ms / 1_000;
  const restRatio = 1 / (1 + Math.exp(sigmoid.slopePerSecond * midpointSeconds));
  if (restRatio < restRatioMax) return undefined;
  const slope = Math.ceil(100 * (Math.log(1 / restRatioMax - 1) / midpointSeconds)) / 100;
  return placed(service, ["admission", "estimatedWait", "sigmoid"], {
    id: "HG443",
    message: `the sigmoid refuses ${Math.round(100 * restRatio)} % of requests while nothing waits`,
    hint: `slope: ${slope}, which then refuses less than 1 %`,
  });
}

/** Warns if one stated minimum latency applies to services that hardly have the same latency. */
function lintStatedLatency(services: readonly ServicePolicy[]): readonly TargetProblem[] {
  const stated = services.filter(({ adaptiveConcurrency }) => {
    return adaptiveConcurrency?.minRtt.kind === "fixed";
  });
  const settings = new Set(stated.map(({ adaptiveConcurrency }) => adaptiveConcurrency));
  const [first, second] = stated;
  // Services with settings of their own each have their own object. Those from `proxies` share one.
  if (first === undefined || second === undefined || settings.size === stated.length) return [];
  const names = `${quoteText(first.name)} and ${quoteText(second.name)}`;
  return [
    {
      id: "HG425",
      spot: { service: undefined, path: ["proxies", "adaptiveConcurrency", "minRtt"] },
      message: `one minimum latency is configured for ${names}`,
      hint: "measure it (`sampled`), or set it for each service",
    },
  ];
}

/** Warns if proxies remove the priority header of untrusted callers before anything reads it. */
function lintPriorityHeader(
  service: ServicePolicy,
  policy: GeneratedPolicy,
): TargetProblem | undefined {
  const { header, trust, rules } = service.priority;
  const isTrusted = trust.anyone || trust.sources.length + trust.principals.length > 0;
  if (isTrusted || !knowsPriorities(policy)) return undefined;
  const problem = {
    id: "HG442",
    message:
      `${quoteText(header)} is removed before it is read here, because the policy ` +
      "trusts no caller",
    hint: "list in priority.from.trust who may set it, or use another header",
  } as const;
  const compiler = new ConditionCompiler();
  const isRead = rules.some(({ when }) => {
    const compiled = compiler.compile(when);
    return compiled.kind === "condition" && compiled.condition.headerNames.has(header);
  });
  if (isRead) return placed(service, ["priority", "rules"], problem);
  const parts = (service.rateLimit?.descriptors ?? []).flatMap((descriptor) => descriptor.parts);
  const isKey = parts.some((part) => part.kind === "header" && part.header === header);
  return isKey ? placed(service, ["rateLimit", "descriptors"], problem) : undefined;
}

function placed(
  service: ServicePolicy,
  path: readonly string[],
  problem: RatedId & Pick<TargetProblem, "message" | "hint">,
): TargetProblem {
  return { ...problem, spot: { service: service.name, path } };
}
