import { create, toBinary } from "@bufbuild/protobuf";
import { anyPack, DurationSchema } from "@bufbuild/protobuf/wkt";
import { type Priority, priorities } from "../core/admission-settings.js";
import type { NodeShare, ServiceShares, ShareSheet } from "../core/feedback.js";
import { breakerKey, concurrencyPinKeys, runtimeLayerName, shedKey } from "../core/runtime-keys.js";
import {
  DiscoveryResponseSchema,
  type Resource,
  ResourceSchema,
} from "../gen/envoy/service/discovery/v3/discovery_pb.js";
import { RuntimeSchema } from "../gen/envoy/service/runtime/v3/rtds_pb.js";
import type { ServiceClusters } from "../policy/service-clusters.js";
import type { ServicePolicy } from "../policy/service-policy.js";
import { emptyLayer, type NodeLayer } from "./layer-ledger.js";

/** The type of runtime layers, as discovery names it. */
export const runtimeTypeUrl = "type.googleapis.com/envoy.service.runtime.v3.Runtime";

/** The largest share there is: Envoy holds thresholds in 32 bits. */
export const shareMax = 2 ** 32 - 1;

/** What a closed gate spares, as admission itself does. */
const sparedPriority: Priority = "critical";

/** What layers are made of while one policy is in force: its services' keys, made once. */
export interface LayerPlan {
  readonly services: readonly PlannedService[];
}

interface PlannedService {
  readonly name: string;
  /** Keys that take the share at Envoy's priority DEFAULT, and those that take the one at HIGH. */
  readonly defaultKeys: readonly string[];
  readonly highKeys: readonly string[];
  readonly isPinned: boolean;
  readonly shedKeys: readonly string[];
}

/** Plans the layers of a policy: for the services that it sends limits back for. */
export function planLayers(
  services: readonly ServicePolicy[],
  clusters: ServiceClusters,
): LayerPlan {
  const told = services.filter(({ concurrency }) => (concurrency?.feedback.length ?? 0) > 0);
  return { services: told.map((service) => planService(service, clusters)) };
}

function planService(service: ServicePolicy, clusters: ServiceClusters): PlannedService {
  const { name, concurrency } = service;
  const isBroken = concurrency?.feedback.includes("circuitBreakers") === true;
  const names = isBroken ? clusters.clustersOf(name) : [];
  return {
    name,
    // What waits for a connection is as much on its way as what is in work: it gets no more room.
    defaultKeys: names.flatMap((cluster) => [
      breakerKey(cluster, "default", "max_requests"),
      breakerKey(cluster, "default", "max_pending_requests"),
    ]),
    highKeys: names.flatMap((cluster) => [
      breakerKey(cluster, "high", "max_requests"),
      breakerKey(cluster, "high", "max_pending_requests"),
    ]),
    isPinned: concurrency?.feedback.includes("adaptiveConcurrency") === true,
    shedKeys: priorities
      .filter((priority) => priority !== sparedPriority)
      .map((priority) => shedKey(name, priority)),
  };
}

/** Services of a plan whose pins exclude each other: Envoy has one pin for all of its filters. */
export function contestedPins({ services }: LayerPlan): readonly string[] {
  const pinned = services.filter(({ isPinned }) => isPinned).map(({ name }) => name);
  return pinned.length > 1 ? pinned : [];
}

/**
 * The layer of one Envoy by a sheet. What the sheet does not say of this Envoy, or says in numbers
 * that are no shares, is left out, so that its configured defaults hold: Envoy acknowledges wrong
 * values like right ones, and takes 0 to refuse everything.
 */
export function layerOf(nodeId: string, sheet: ShareSheet | undefined, plan: LayerPlan): NodeLayer {
  if (sheet === undefined) return emptyLayer;
  const values = new Map<string, number>();
  const shares = new Map<string, number>();
  const arePinsContested = contestedPins(plan).length > 0;
  for (const planned of plan.services) {
    const known = sheet.services.get(planned.name);
    if (known === undefined) continue;
    shed(planned, known, values);
    const share = known.shares.get(nodeId);
    if (share === undefined || !isShare(share)) continue;
    const isPinned = planned.isPinned && !arePinsContested;
    if (planned.defaultKeys.length === 0 && !isPinned) continue;
    for (const key of planned.defaultKeys) values.set(key, share.default);
    for (const key of share.high > 0 ? planned.highKeys : []) values.set(key, share.high);
    for (const key of isPinned ? concurrencyPinKeys : []) {
      values.set(key, share.default + share.high);
    }
    shares.set(planned.name, share.default + share.high);
  }
  return { version: `${sheet.epoch}.${sheet.version}`, values, shares };
}

/** A closed gate is answered by Envoy; one that is half open by admission, which draws. */
function shed(
  { shedKeys }: PlannedService,
  { gate }: ServiceShares,
  to: Map<string, number>,
): void {
  if (gate !== "closed") return;
  for (const key of shedKeys) to.set(key, 100);
}

/** Whether both parts are whole numbers that Envoy takes for what they are. */
function isShare({ default: usual, high }: NodeShare): boolean {
  return isWhole(usual, 1) && isWhole(high, 0);
}

function isWhole(value: number, min: number): boolean {
  return Number.isInteger(value) && value >= min && value <= shareMax;
}

/** Whether two layers tell an Envoy the same. */
export function isSameLayer(one: NodeLayer, other: NodeLayer): boolean {
  if (one.values.size !== other.values.size) return false;
  for (const [key, value] of one.values) if (other.values.get(key) !== value) return false;
  return true;
}

/** What an answer with layers says. */
export interface LayerAnswer {
  readonly nonce: string;
  /** Undefined: ours was not asked for. */
  readonly layer: NodeLayer | undefined;
  readonly ttlMs: number;
  /** Other layers that were asked for: they are answered empty, so that nobody waits for them. */
  readonly emptyNames: readonly string[];
}

/**
 * An answer with the layer of `runtimeLayerName`, whole, that ends by itself when nobody renews it.
 *
 * Source: envoy.service.discovery.v3.DiscoveryResponse and Resource; envoy.service.runtime.v3.
 */
export function encodeLayers({ nonce, layer, ttlMs, emptyNames }: LayerAnswer): Uint8Array {
  const others = emptyNames.map((name) => create(RuntimeSchema, { name, layer: {} }));
  return toBinary(
    DiscoveryResponseSchema,
    create(DiscoveryResponseSchema, {
      typeUrl: runtimeTypeUrl,
      versionInfo: layer?.version ?? emptyLayer.version,
      nonce,
      resources: [
        ...(layer === undefined ? [] : [anyPack(ResourceSchema, resourceOf(layer, ttlMs))]),
        ...others.map((one) => anyPack(RuntimeSchema, one)),
      ],
    }),
  );
}

function resourceOf({ version, values }: NodeLayer, ttlMs: number): Resource {
  const layer = Object.fromEntries(values);
  const runtime = create(RuntimeSchema, { name: runtimeLayerName, layer });
  const ttl = create(DurationSchema, {
    seconds: BigInt(Math.floor(ttlMs / 1_000)),
    nanos: (ttlMs % 1_000) * 1_000_000,
  });
  const resource = anyPack(RuntimeSchema, runtime);
  return create(ResourceSchema, { name: runtimeLayerName, version, ttl, resource });
}
