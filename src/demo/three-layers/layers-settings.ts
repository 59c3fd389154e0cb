import type { Priority } from "../../core/admission/priority.js";

/** Where requests are protected: in their caller, in the proxy, and in the service. */
export const layerNames = ["client", "proxy", "server"] as const;

/** One of them. */
export type LayerName = (typeof layerNames)[number];

/** Which of them are on. */
export type Layers = Readonly<Record<LayerName, boolean>>;

/** What a person can change while the example runs. */
export interface LayersSettings {
  readonly layers: Layers;
  /** Requests, in multiples of what all workers can serve, from 0 to `layersLoadMax`. */
  readonly loadRatio: number;
  /** Workers that live, as a part of all of them, from 0 to 1. */
  readonly workersRatio: number;
}

/** The most that can be asked for. */
export const layersLoadMax = 12;

/** How it begins. */
export const initialSettings: LayersSettings = {
  layers: { client: true, proxy: true, server: true },
  loadRatio: 0.8,
  workersRatio: 1,
};

/** Workers of the service. Each works on one request at a time. */
export const workerCount = 20;

/** Mean time that a worker needs for a request, in milliseconds; from half of it to half more. */
export const meanWorkMs = 200;

/** Requests a second that all workers can serve. */
export const capacityPerSecond = (workerCount * 1_000) / meanWorkMs;

/** How long a caller waits for its answer, all attempts included, in milliseconds. */
export const patienceMs = 2_000;

/** Critical requests, as a part of what all workers can serve: no surge makes more of them. */
const criticalPart = 0.2;

/** What part of the other requests is of a class. */
const otherParts = { high: 0.2, normal: 0.4, low: 0.4 } as const;

/** The class of a request, at a load. @param draw uniform in [0, 1) */
export function drawClass(loadRatio: number, draw: number): Priority {
  const critical = Math.min(1, criticalPart / loadRatio);
  if (draw < critical) return "critical";
  const left = (draw - critical) / (1 - critical);
  if (left < otherParts.high) return "high";
  return left < otherParts.high + otherParts.normal ? "normal" : "low";
}

/** The work of a request, in milliseconds. @param draw uniform in [0, 1) */
export function drawWorkMs(draw: number): number {
  return meanWorkMs * (0.5 + draw);
}

/** The hosts under which Envoy knows the service, as envoy/three-layers/policy.yaml has them. */
export const serviceHosts = { protected: "orders.example", bare: "unprotected.example" } as const;

/** The header that states the class of a request, in all three layers. */
export const priorityHeader = "x-request-priority";

/** The header that states the work of a request, in milliseconds: as if its size told. */
export const workHeader = "x-work-ms";

/** How a caller without the library tries again: as many HTTP clients do by default. */
export const naiveRetries = { attemptsMax: 3, attemptMsMax: 1_000, backoffMs: 50 } as const;
