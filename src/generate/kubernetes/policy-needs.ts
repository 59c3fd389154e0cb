import type { SignalPlace } from "../../policy/services/signal-source.js";
import type { GeneratedPolicy } from "../base/generator.js";
import { drivesProxies } from "../envoy/http/layered-runtime.js";
import { isWatched } from "../envoy/http/telemetry.js";

/** What an installation has to have so that a policy works in it. */
export interface PolicyNeeds {
  /** Whether what replicas count has to add up: limits, permits, or one limit for a fleet. */
  readonly hasSharedState: boolean;
  /** Whether Envoys are told shares or assignments, or tell what they do. */
  readonly hasControlPort: boolean;
  /** Whether tickets of waiting rooms are signed. */
  readonly hasRooms: boolean;
  readonly servesTls: boolean;
  /** Whether proxies come with certificates of their own. */
  readonly asksForCertificates: boolean;
  /** Whether a reading comes from the Prometheus that the process is told of. */
  readonly asksPrometheus: boolean;
  /** Keys of the store that hold readings, each once. */
  readonly signalKeys: readonly string[];
  /** URLs that readings come from, each once; of a broker `kafka://host:port`. */
  readonly signalUrls: readonly string[];
}

/** What a policy needs. */
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
