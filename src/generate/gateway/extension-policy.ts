import { readsBodies } from "../../policy/budgets/budget-policy.js";
import type { ServicePolicy } from "../../policy/services/service-policy.js";
import { type ObjectPlace, objectName, specObject } from "../base/custom-object.js";
import { noted, type Tree, type TreeMap } from "../base/document.js";
import { findItem } from "../base/merge-values.js";
import { isPlainList, mapIn } from "../base/plain-tree.js";
import { asMap, itemsOf, memberOf, withMember } from "../base/tree-members.js";
import type { EnvoyContext } from "../envoy/base/context.js";
import { replicaEjection, streamsMax } from "../envoy/base/headgate-clusters.js";
import {
  extProcFilter,
  messageTimeoutMs,
  processingMode,
  usesExtProc,
} from "../envoy/http/ext-proc.js";
import { existingFor } from "../merge/merge-into.js";
import { routeTarget } from "./backend-traffic-policy.js";
import {
  envoyGatewayVersion,
  gatewayDuration,
  gatewayGroup,
  routePlace,
  xdsExtProc,
} from "./gateway-names.js";
import { hasGatewayFeature } from "./gateway-version.js";

/**
 * Returns the admission settings of a service: Headgate as the external processor of its HTTPRoute.
 * Patches add what this kind cannot express: trailers, without which a permit is released too
 * early, and the headers that Headgate may change.
 *
 * Source: Envoy Gateway, EnvoyExtensionPolicy.
 */
export function extensionPolicy(
  service: ServicePolicy,
  context: EnvoyContext,
): TreeMap | undefined {
  if (!usesExtProc(service, context.policy)) return undefined;
  const backend = headgateBackend(context);
  if (backend === undefined) return undefined;
  const { deniesWithoutAnswer } = context.policy.proxies.headgate;
  const place = routePlace(service, context);
  return specObject({ apiVersion: envoyGatewayVersion, kind: "EnvoyExtensionPolicy" }, place, {
    targetRefs: [routeTarget(service, context)],
    extProc: [
      {
        backendRefs: [backend],
        backendSettings: {
          circuitBreaker: noted("Each active request holds a stream.", {
            maxPendingRequests: streamsMax,
            maxParallelRequests: streamsMax,
          }),
          healthCheck: {
            passive: noted(replicaEjection.note, {
              splitExternalLocalOriginErrors: true,
              consecutiveLocalOriginFailures: replicaEjection.failureCount,
              consecutive5XxErrors: 0,
              interval: replicaEjection.interval,
              baseEjectionTime: replicaEjection.baseTime,
              maxEjectionPercent: replicaEjection.percentMax,
            }),
          },
        },
        messageTimeout: gatewayDuration(messageTimeoutMs(context)),
        failOpen: !deniesWithoutAnswer,
        processingMode: readsBodies(service)
          ? noted("The body of a request says what it may cost.", {
              request: { body: "Buffered" },
              response: {},
            })
          : noted("Headers only.", { request: {}, response: {} }),
      },
    ],
  });
}

/** Returns Headgate's Service. Undefined if its address is not the name of one. */
function headgateService({ policy }: EnvoyContext): ObjectPlace | undefined {
  return serviceOf(policy.proxies.headgate.address);
}

/** Parses the full host name of a Service in the cluster. Undefined if it is not one. */
export function serviceOf(address: string): ObjectPlace | undefined {
  const [, name, namespace] = /^([a-z0-9-]+)\.([a-z0-9-]+)\.svc(?:\.|$)/.exec(address) ?? [];
  return name === undefined || namespace === undefined ? undefined : { name, namespace };
}

function headgateBackend(context: EnvoyContext): TreeMap | undefined {
  const service = headgateService(context);
  if (service === undefined) {
    context.report({
      id: "HG354",
      spot: { service: undefined, path: ["proxies", "headgate", "address"] },
      message: "Envoy Gateway calls Services of the cluster, and this is not the name of one",
      hint: "such as headgate.headgate.svc.cluster.local; for an address outside, create a Service",
    });
    return undefined;
  }
  return { ...service, port: context.policy.proxies.headgate.port };
}

/** The Secret of Headgate's pods, by its name in the Kubernetes target. */
const serverSecret = "headgate-tls";

/** The Secret next to the Gateway with the client certificate of its Envoys. */
export const clientSecret = "headgate-client-tls";

/** Reports whether Envoys present a client certificate when they request admission. */
export function showsCertificate({ policy }: EnvoyContext): boolean {
  return (
    policy.proxies.headgate.tls?.certificate !== undefined &&
    policy.services.some((service) => usesExtProc(service, policy))
  );
}

/**
 * Returns how Envoys connect to Headgate's Service over TLS, for which Envoy Gateway accepts no
 * files. Undefined if no service requests admission, or if Headgate is called in plaintext.
 *
 * Source: Gateway API, BackendTLSPolicy; v1 since 1.4, which Envoy Gateway 1.6 includes.
 */
export function backendTlsPolicy(context: EnvoyContext): TreeMap | undefined {
  const service = headgateService(context);
  const { tls } = context.policy.proxies.headgate;
  if (service === undefined || tls === undefined) return undefined;
  const { policy } = context;
  if (!policy.services.some((one) => usesExtProc(one, policy))) return undefined;
  const version = hasGatewayFeature(context, "backendTlsV1") ? "v1" : "v1alpha3";
  return specObject(
    { apiVersion: `${gatewayGroup}/${version}`, kind: "BackendTLSPolicy" },
    { name: objectName(`${context.policy.name}-ext-proc`), namespace: service.namespace },
    {
      targetRefs: [{ group: "", kind: "Service", name: service.name }],
      validation: {
        caCertificateRefs: noted("The Secret of Headgate's pods, for its ca.crt.", [
          { group: "", kind: "Secret", name: serverSecret },
        ]),
        hostname: tls.serverName,
      },
    },
  );
}

/** Allows policies in other namespaces to refer to Headgate's Service. */
export function referenceGrant(context: EnvoyContext): TreeMap | undefined {
  const service = headgateService(context);
  if (service === undefined) return undefined;
  const { policy } = context;
  const asking = policy.services.filter((one) => usesExtProc(one, policy));
  const namespaces = new Set(asking.map((one) => routePlace(one, context).namespace));
  namespaces.delete(service.namespace);
  if (namespaces.size === 0) return undefined;
  const type = { apiVersion: `${gatewayGroup}/v1beta1`, kind: "ReferenceGrant" };
  const name = objectName(`${context.policy.name}-ext-proc`);
  return specObject(
    type,
    { name, namespace: service.namespace },
    {
      from: [...namespaces].sort().map((namespace) => ({
        group: "gateway.envoyproxy.io",
        kind: "EnvoyExtensionPolicy",
        namespace,
      })),
      to: [{ group: "", kind: "Service", name: service.name }],
    },
  );
}

/** Returns Envoy Gateway's names for Headgate's ext_proc, which may be in a user's policy. */
export function serviceExtProc(
  service: ServicePolicy,
  context: EnvoyContext,
): ReturnType<typeof xdsExtProc> {
  const place = routePlace(service, context);
  const { existing } = context.options;
  const ours = existing.length === 0 ? undefined : extensionPolicy(service, context);
  const user = ours && existingFor(existing, ours);
  const [item] = itemsOf(memberOf(memberOf(ours ?? {}, "spec") ?? {}, "extProc"));
  if (user === undefined || item === undefined) return xdsExtProc(place, 0);
  const { extProc } = mapIn(user.object, "spec");
  const list = isPlainList(extProc) ? extProc : [];
  const index = findItem(list, item, "backendRefs");
  return xdsExtProc(user, index === -1 ? list.length : index);
}

/**
 * Returns the policy's filter as it must be: disabled, as Envoy Gateway generates it, except for
 * the routes for which Envoy Gateway enables it.
 */
export function extProcOf(service: ServicePolicy, context: EnvoyContext): Tree | undefined {
  const { cluster, filter } = serviceExtProc(service, context);
  const headgateClusters = { ...context.headgateClusters, decisions: cluster };
  const whole = extProcFilter([service], { ...context, headgateClusters });
  const config = whole === undefined ? undefined : asMap(memberOf(whole, "typed_config"));
  if (config === undefined) return undefined;
  const grpc = asMap(config["grpc_service"]);
  const reported = {
    ...grpc,
    initial_metadata: [{ key: "x-headgate-service", value: service.name }],
  };
  return {
    name: filter,
    disabled: true,
    typed_config: withMember(
      withMember(config, "grpc_service", reported),
      "processing_mode",
      processingMode(service),
    ),
  };
}
