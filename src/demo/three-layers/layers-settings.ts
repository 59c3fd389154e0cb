import type { Priority } from "../../core/admission/priority.js";

/** Places in which requests are protected: their caller, the proxy, and the service. */
export const layerNames = ["client", "proxy", "server"] as const;

/** One of the layers. */
export type LayerName = (typeof layerNames)[number];

/** Which layers are on. */
export type Layers = Readonly<Record<LayerName, boolean>>;

/** Settings that a user can change while the example runs. */
export interface LayersSettings {
  readonly layers: Layers;
  /** Load in multiples of the capacity of all workers, from 0 to `layersLoadMax`. */
  readonly loadRatio: number;
  /** Part of the workers that are alive, from 0 to 1. */
  readonly workersRatio: number;
}

/** Maximum `loadRatio`. */
export const layersLoadMax = 12;

/** Settings at the start. */
export const initialSettings: LayersSettings = {
  layers: { client: true, proxy: true, server: true },
  loadRatio: 0.8,
  workersRatio: 1,
};

/** Workers of the service. Each works on one request at a time. */
export const workerCount = 20;

/** Mean work of a request, in milliseconds. It varies by half in both directions. */
export const meanWorkMs = 200;

/** Requests per second that all workers can serve. */
export const capacityPerSecond = (workerCount * 1_000) / meanWorkMs;

/** Time that a caller waits for its response, including all attempts, in milliseconds. */
export const patienceMs = 2_000;

/** Critical requests as a part of the capacity of all workers. No surge adds more of them. */
const criticalPart = 0.2;

/** Parts of the classes among the other requests. */
const otherParts = { high: 0.2, normal: 0.4, low: 0.4 } as const;

/** Draws the class of a request at a load. @param draw uniform in [0, 1) */
export function drawClass(loadRatio: number, draw: number): Priority {
  const critical = Math.min(1, criticalPart / loadRatio);
  if (draw < critical) return "critical";
  const left = (draw - critical) / (1 - critical);
  if (left < otherParts.high) return "high";
  return left < otherParts.high + otherParts.normal ? "normal" : "low";
}

/** Draws the work of a request, in milliseconds. @param draw uniform in [0, 1) */
export function drawWorkMs(draw: number): number {
  return meanWorkMs * (0.5 + draw);
}

/** Hosts under which Envoy knows the service, as in envoy/three-layers/policy.yaml. */
export const serviceHosts = { protected: "orders.example", bare: "unprotected.example" } as const;

/** The header that states the class of a request, in all three layers. */
export const priorityHeader = "x-request-priority";

/** Header with the work of a request, in milliseconds, in place of a request's size. */
export const workHeader = "x-work-ms";

/** Retries of a caller without the library, as in the defaults of many HTTP clients. */
export const naiveRetries = { attemptsMax: 3, attemptMsMax: 1_000, backoffMs: 50 } as const;
