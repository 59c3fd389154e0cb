import { runtimeLayerName } from "../../../core/feedback/runtime-keys.js";
import type { ServicePolicy } from "../../../policy/services/service-policy.js";
import { noted, type Tree, type TreeMap } from "../../base/document.js";
import type { GeneratedPolicy } from "../../base/generator.js";
import type { EnvoyContext } from "../base/context.js";
import { hasFeature } from "../base/envoy-features.js";
import { usesExtProc } from "./ext-proc.js";

/**
 * Reports whether Headgate drives proxies for a service: it sends limits, closes gates, or disables
 * a backstop while it is connected.
 */
export function isDriven(service: ServicePolicy): boolean {
  const { concurrency, admission, localRateLimit, admissionControl } = service;
  return (
    (concurrency?.feedback.length ?? 0) > 0 ||
    admission?.gate !== undefined ||
    localRateLimit?.when === "withoutHeadgate" ||
    admissionControl?.when === "withoutHeadgate"
  );
}

/** Reports whether Headgate drives any proxy, for a service or at the gate of a waiting room. */
export function drivesProxies({
  services,
  waitingRooms,
}: Pick<GeneratedPolicy, "services" | "waitingRooms">): boolean {
  return services.some(isDriven) || waitingRooms.some(({ gate }) => gate !== undefined);
}

/**
 * Returns the layers of runtime keys, later ones taking precedence: keys that a version of Envoy
 * needs, keys from Headgate, and keys that an operator sets.
 *
 * Source: envoy.config.bootstrap.v3.LayeredRuntime.
 */
export function layeredRuntime(context: EnvoyContext): TreeMap {
  const { services } = context.policy;
  return {
    layers: [
      { name: "static", static_layer: guards(services, context) },
      ...(drivesProxies(context.policy) ? [headgateLayer(context)] : []),
      noted("Values that an operator sets by hand win.", { name: "admin", admin_layer: {} }),
    ],
  };
}

function guards(services: readonly ServicePolicy[], context: EnvoyContext): TreeMap {
  const isAsking = services.some((service) => usesExtProc(service, context.policy));
  if (!isAsking || !hasFeature(context, "gracefulExtProc")) return {};
  return {
    "envoy.reloadable_features.ext_proc_graceful_grpc_close": noted(
      "Without it, Envoy resets the stream of every request, which servers treat as an attack.",
      true,
    ),
  };
}

function headgateLayer({ headgateClusters }: EnvoyContext): Tree {
  return noted(
    "Values from Headgate. They expire if Headgate does not renew them; then the " +
      "configured values apply.",
    {
      name: runtimeLayerName,
      rtds_layer: {
        name: runtimeLayerName,
        rtds_config: {
          resource_api_version: "V3",
          initial_fetch_timeout: noted("Envoy starts without waiting for Headgate.", "1s"),
          api_config_source: {
            api_type: "GRPC",
            transport_api_version: "V3",
            set_node_on_first_message_only: true,
            grpc_services: [
              {
                envoy_grpc: {
                  cluster_name: headgateClusters.control,
                  retry_policy: noted("Reconnects within half a second; a layer lives for 15 s.", {
                    retry_back_off: { base_interval: "0.1s", max_interval: "0.5s" },
                  }),
                },
              },
            ],
          },
        },
      },
    },
  );
}
