import { runtimeLayerName } from "../../../core/feedback/runtime-keys.js";
import { noted, type Tree, type TreeMap } from "../../base/document.js";
import { asMap, itemsOf, memberOf } from "../../base/tree-members.js";
import type { EnvoyContext } from "../base/context.js";
import { headgateClusters } from "../base/headgate-clusters.js";
import { layeredRuntime } from "../http/layered-runtime.js";
import { telemetry } from "../http/telemetry.js";
import { overload } from "./overload.js";

/** Properties of the bootstrap that another product generates, and additions to it. */
interface OtherBootstrap {
  /** Comment on the cluster of Headgate's control port. */
  readonly clusterNote: string;
  /** Runtime keys in addition to those of the policy. */
  readonly runtimeKeys: TreeMap;
  /** Whether it already has an admin layer. There can be at most one. */
  readonly hasAdminLayer: boolean;
}

/**
 * Returns fields to merge into a bootstrap of Istio or Envoy Gateway with protobuf's rules: lists
 * are appended to existing lists. Empty if there is nothing to add.
 */
export function mergedBootstrap(context: EnvoyContext, other: OtherBootstrap): TreeMap {
  const watched = telemetry(context);
  const layers = runtimeLayers(context, other);
  const { control, quotas } = context.headgateClusters;
  const usesControl =
    watched["stats_sinks"] !== undefined ||
    (quotas === control && context.policy.quotas.length > 0) ||
    layers.some((layer) => memberOf(layer, "name") === runtimeLayerName);
  return {
    static_resources: usesControl ? { clusters: controlClusters(context, other) } : undefined,
    layered_runtime: layers.length === 0 ? undefined : { layers },
    ...watched,
    overload_manager: overload(context),
  };
}

/** Reports whether a bootstrap sets nothing. */
export function isEmptyBootstrap(bootstrap: TreeMap): boolean {
  return Object.values(bootstrap).every((field) => field === undefined);
}

/** Envoy requests runtime layers before any control plane has sent it clusters. */
function controlClusters(context: EnvoyContext, { clusterNote }: OtherBootstrap): readonly Tree[] {
  const { control } = context.headgateClusters;
  return headgateClusters(context)
    .filter((one) => memberOf(one, "name") === control)
    .map((cluster) => noted(clusterNote, cluster));
}

/** The other bootstrap may have a static layer too, and names of layers must be unique. */
function runtimeLayers(
  context: EnvoyContext,
  { runtimeKeys, hasAdminLayer }: OtherBootstrap,
): readonly Tree[] {
  const layers = itemsOf(layeredRuntime(context)["layers"]);
  const guards = asMap(layers.flatMap((layer) => asMap(layer)?.["static_layer"] ?? []).at(0));
  const keys = { ...guards, ...runtimeKeys };
  const others = layers.filter(
    (layer) =>
      memberOf(layer, "static_layer") === undefined && memberOf(layer, "admin_layer") === undefined,
  );
  const admin = layers.filter((layer) => memberOf(layer, "admin_layer") !== undefined);
  const isKeyed = Object.keys(keys).length > 0;
  return [
    ...(isKeyed ? [{ name: "headgate_static", static_layer: keys }] : []),
    ...others,
    ...(hasAdminLayer || others.length === 0 ? [] : admin),
  ];
}
