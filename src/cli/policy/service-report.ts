import { many } from "../../core/base/many.js";
import { concurrencyLaws } from "../../core/concurrency/concurrency-laws.js";
import type { AdmissionPolicy } from "../../policy/services/service-admission.js";
import type { ServicePolicy } from "../../policy/services/service-policy.js";
import type { TrustPolicy } from "../../policy/services/service-priority.js";
import { renderSection, sectionRowsMax } from "./policy-section.js";

/** Summary of a service in a policy, in words. The same names are used in JSON. */
interface ServiceReportRow {
  readonly name: string;
  /**
   * `off`, or the checks of admission; after `dry run:` those that only count. It also says if a
   * service has classes but only permits and circuit breakers, which ignore classes.
   */
  readonly admission: string;
  /** What limits the requests in flight. */
  readonly limit: string;
  /** Callers trusted to state a request's class. */
  readonly classStatedBy: string;
  /** Settings that differ from Envoy's defaults, by the policy's names; `default`: none. */
  readonly atEnvoy: string;
}

/** Summarizes the protection of each service. */
export function summarizeServices(services: readonly ServicePolicy[]): readonly ServiceReportRow[] {
  return services.map((service) => ({
    name: service.name,
    admission: service.admission === undefined ? "off" : checksOf(service, service.admission),
    limit: limitOf(service),
    classStatedBy: trustOf(service.priority.trust),
    atEnvoy: protectionsOf(service),
  }));
}

/** Returns the services as a table; empty if there are none. */
export function renderServices(services: readonly ServicePolicy[]): string {
  const summaries = summarizeServices(services);
  const shown = summaries.slice(0, sectionRowsMax);
  return renderSection("Services", summaries, {
    service: "name",
    admission: "admission",
    limit: "limit",
    "trusted callers": "classStatedBy",
    // A column with only `default` is left out.
    ...(shown.some(({ atEnvoy }) => atEnvoy !== defaultWord) ? { "at Envoy": "atEnvoy" } : {}),
  });
}

/** Checks in the order in which they run. */
const checks = [
  ["deadline", "deadline"],
  ["gate", "gate"],
  ["throttle", "throttle"],
  ["estimatedWait", "estimatedWait"],
  ["shedAt", "priority"],
  ["load", "load"],
  ["queue", "queue"],
] as const satisfies readonly (readonly [keyof AdmissionPolicy, string])[];

function checksOf({ concurrency, priority }: ServicePolicy, admission: AdmissionPolicy): string {
  const present = checks.filter(([name]) => admission[name] !== undefined);
  const isDry = ([, block]: (typeof checks)[number]) => admission.dryRun.has(block);
  const words = present.filter((check) => !isDry(check)).map(([name]) => name);
  const dry = present.filter(isDry).map(([name]) => name);
  const parts = [words.join(" "), dry.length > 0 ? `dry run: ${dry.join(" ")}` : ""];
  if (present.length > 0) return parts.filter((part) => part !== "").join("; ");
  const hasBreakers = concurrency?.feedback.includes("circuitBreakers") === true;
  return hasBreakers && priority.rules.length > 0 ? "permits; breakers ignore classes" : "permits";
}

function limitOf({ admission, concurrency }: ServicePolicy): string {
  const max = admission?.maxInFlight;
  const isDry = admission?.dryRun.has("permits") === true;
  const words: string[] = [];
  if (concurrency !== undefined) {
    const { law, limits } = concurrency.settings;
    const isConstant = concurrencyLaws[law].learnsFrom === "nothing";
    words.push(isConstant ? `${limits.max}` : `${law} ${limits.min} to ${limits.max}`);
  }
  if (max !== undefined) words.push(words.length === 0 ? `${max}` : `at most ${max}`);
  if (words.length === 0) return "none";
  return isDry ? `dry run: ${words.join(", ")}` : words.join(", ");
}

function trustOf({ anyone, sources, principals }: TrustPolicy): string {
  if (anyone) return "anyone";
  const words = [
    ...(sources.length > 0 ? [many(sources.length, "network")] : []),
    ...(principals.length > 0 ? [many(principals.length, "principal")] : []),
  ];
  return words.length === 0 ? "none" : words.join(", ");
}

const defaultWord = "default";

/** Optional settings, in the order of the policy language. */
const protections = [
  "retries",
  "localRateLimit",
  "adaptiveConcurrency",
  "admissionControl",
] as const satisfies readonly (keyof ServicePolicy)[];

function protectionsOf(service: ServicePolicy): string {
  const { direction, circuitBreakers, outlierDetection } = service;
  const words: string[] = protections.filter((name) => service[name] !== undefined);
  if (circuitBreakers.requestsMax !== "auto") {
    words.unshift(`maxRequests ${circuitBreakers.requestsMax}`);
  }
  if (outlierDetection === undefined) words.push("no outlierDetection");
  if (direction === "outbound") words.unshift("outbound:");
  return words.length === 0 ? defaultWord : words.join(" ");
}
