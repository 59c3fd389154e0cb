import type { SignalPlace } from "../../policy/services/signal-source.js";
import type { GeneratedPolicy } from "../base/generator.js";
import { drivesProxies } from "../envoy/http/layered-runtime.js";
import { isWatched } from "../envoy/http/telemetry.js";

/** Features that an installation needs for a policy. */
export interface PolicyNeeds {
  /** Whether replicas must count together: limits, permits, or one limit for a fleet. */
  readonly hasSharedState: boolean;
  /** Whether Envoys receive shares or assignments, or report load. */
  readonly hasControlPort: boolean;
  /** Whether waiting rooms sign tickets. */
  readonly hasRooms: boolean;
  readonly servesTls: boolean;
  /** Whether proxies present client certificates. */
  readonly asksForCertificates: boolean;
  /** Whether a signal is read from the process's default Prometheus. */
  readonly asksPrometheus: boolean;
  /** Keys of the store that hold signals, each once. */
  readonly signalKeys: readonly string[];
  /** URLs from which signals are read, each once; for a broker `kafka://host:port`. */
  readonly signalUrls: readonly string[];
}

/** Returns what a policy needs. */
export function policyNeeds(policy: GeneratedPolicy): PolicyNeeds {
  const { rules, services, quotas, waitingRooms, proxies } = policy;
  const places = services.flatMap(({ concurrency }) => concurrency?.signal?.place ?? []);
  const { tls } = proxies.headgate;
  return {
    hasSharedState:
      rules.some(({ effect }) => effect.kind === "limited") ||
      services.some(({ admission, concurrency }) => admission ?? concurrency) ||
      waitingRooms.length > 0 ||
      places.some(({ kind }) => kind === "redis"),
    hasControlPort: quotas.length > 0 || drivesProxies(policy) || services.some(isWatched),
    hasRooms: waitingRooms.length > 0,
    servesTls: tls !== undefined,
    asksForCertificates: tls?.certificate !== undefined,
    asksPrometheus: places.some(
      (place) => place.kind === "prometheus" && place.server === undefined,
    ),
    signalKeys: distinct(places.flatMap((place) => (place.kind === "redis" ? [place.key] : []))),
    signalUrls: distinct(places.flatMap(urlsOf)),
  };
}

function urlsOf(place: SignalPlace): readonly string[] {
  switch (place.kind) {
    case "prometheus":
      return place.server === undefined ? [] : [place.server];
    case "metrics":
    case "http":
      return [place.url];
    case "kafka":
      return place.brokers.map((broker) => `kafka://${broker}`);
    default:
      return [];
  }
}

function distinct(texts: readonly string[]): readonly string[] {
  return [...new Set(texts)];
}
