import { fallbackHeader } from "../../core/limits/request-marks.js";
import { asksForCertificate, type ListenerTls } from "../../policy/proxies/listener-tls.js";
import { softAnswers } from "../../policy/services/soft-answers.js";
import { objectName, specObject } from "../base/custom-object.js";
import { noted, type Tree, type TreeMap } from "../base/document.js";
import { renderYaml } from "../base/render.js";
import type { EnvoyContext } from "../envoy/base/context.js";
import { sanType } from "../envoy/base/tls-socket.js";
import { isEmptyBootstrap, mergedBootstrap } from "../envoy/bootstrap/merged-bootstrap.js";
import { listenerBodyBytes } from "../envoy/http/usage.js";
import { clientSecret, showsCertificate } from "./extension-policy.js";
import {
  envoyGatewayVersion,
  gatewayDuration,
  gatewayGroup,
  gatewayName,
} from "./gateway-names.js";

/**
 * Returns what Envoys read at startup, merged into Envoy Gateway's bootstrap. Undefined if there is
 * nothing to merge.
 *
 * Source: Envoy Gateway, EnvoyProxy, `bootstrap`.
 */
export function envoyProxy(context: EnvoyContext): TreeMap | undefined {
  reportConnections(context);
  reportHeap(context);
  const bootstrap = mergedBootstrap(context, {
    clusterNote: "Envoys connect here directly, whatever Envoy Gateway knows.",
    runtimeKeys: {},
    hasAdminLayer: false,
  });
  const backendTls = clientCertificate(context);
  if (isEmptyBootstrap(bootstrap) && backendTls === undefined) return undefined;
  const type = { apiVersion: envoyGatewayVersion, kind: "EnvoyProxy" };
  const merged = { type: "Merge", value: renderYaml(bootstrap) };
  const reported = watchesHeap(context) ? noted(heapNote, merged) : merged;
  return specObject(type, gatewayName(context), {
    backendTLS: backendTls,
    bootstrap: isEmptyBootstrap(bootstrap) ? undefined : reported,
  });
}

/** Returns the client certificate of Envoys, if a BackendTLSPolicy makes them use TLS. */
function clientCertificate(context: EnvoyContext): TreeMap | undefined {
  if (!showsCertificate(context)) return undefined;
  const { namespace } = gatewayName(context);
  return {
    clientCertificateRef: noted(
      "A Secret with tls.crt and tls.key, signed by the CA in Headgate's ca.crt. " +
        "Envoys present it to every backend that has a BackendTLSPolicy.",
      { kind: "Secret", name: clientSecret, namespace },
    ),
  };
}

/** Source: Envoy Gateway, its bootstrap's `overload_manager`, by the container's memory limit. */
const heapNote =
  "Set no memory limit here " +
  "(provider.kubernetes.envoyDeployment.container.resources.limits). Envoy Gateway " +
  "would add its own heap monitor and actions, and Envoy does not start with two " +
  "of the same name.";

function watchesHeap({ policy }: EnvoyContext): boolean {
  const { overload } = policy.proxies;
  return overload?.heap !== undefined || overload?.cgroupMemory !== undefined;
}

/** Other objects, which are not ours, define whether pods have a limit. */
function reportHeap(context: EnvoyContext): void {
  if (!watchesHeap(context)) return;
  const { heap } = context.policy.proxies.overload ?? {};
  const name = heap === undefined ? "cgroupMemory" : "heap";
  context.report({
    id: "HG357",
    spot: { service: undefined, path: ["proxies", "overload", name] },
    message: "with a memory limit on the gateway's pods, their Envoys do not start",
    hint: `set no limits.memory in the EnvoyProxy, or leave ${name} to Envoy Gateway`,
  });
}

/** Envoy refuses two monitors of the same name, and Envoy Gateway adds this one itself. */
function reportConnections({ policy, report }: EnvoyContext): void {
  if (policy.proxies.overload?.connectionsMax === undefined) return;
  report({
    id: "HG356",
    spot: { service: undefined, path: ["proxies", "overload", "maxConnections"] },
    message: "Envoy Gateway limits the connections of a process itself, to 50,000",
    hint: "leave it out: proxies.listener.maxConnections limits those of a listener",
  });
}

/** Limits of the Gateway's listeners. Source: Envoy Gateway, ClientTrafficPolicy. */
export function clientTrafficPolicy(context: EnvoyContext): Tree {
  const { connectionsMax, concurrentStreamsMax, trustedHops, escapedSlashes, tls, http3 } =
    context.policy.proxies.listener;
  const gateway = gatewayName(context);
  const bodyBytes = listenerBodyBytes(context);
  const { policy } = context;
  const mayFallBack = policy.services.some(
    (service) => softAnswers(policy)(service).clusters.length > 0,
  );
  const type = { apiVersion: envoyGatewayVersion, kind: "ClientTrafficPolicy" };
  return specObject(type, gateway, {
    targetRefs: [{ group: gatewayGroup, kind: "Gateway", name: gateway.name }],
    connection: {
      connectionLimit: { value: connectionsMax },
      bufferLimit: bodyBytes === 0 ? undefined : noted("Request bodies are read.", bodyBytes),
    },
    http2: { maxConcurrentStreams: concurrentStreamsMax },
    headers: mayFallBack
      ? noted("Headgate's own: routes look at it.", {
          earlyRequestHeaders: { remove: [fallbackHeader] },
        })
      : undefined,
    tls: tls && callerTls(tls),
    http3: http3 && callersOverQuic(context),
    path:
      escapedSlashes === undefined
        ? undefined
        : { escapedSlashesAction: capitalized(escapedSlashes) },
    clientIPDetection:
      trustedHops === 0
        ? undefined
        : {
            xForwardedFor: {
              numTrustedHops: noted("Proxies of our own in front of these.", trustedHops),
            },
          },
  });
}

/**
 * Returns limits of open connections for the Gateway's TCP listeners, which have the same names as
 * in the policy.
 */
export function tcpTrafficPolicies(context: EnvoyContext): readonly Tree[] {
  const gateway = gatewayName(context);
  const type = { apiVersion: envoyGatewayVersion, kind: "ClientTrafficPolicy" };
  return context.policy.proxies.tcpListeners.map(({ name, connectionsMax, idleMs }) => {
    const own = { ...gateway, name: objectName(`${gateway.name}-${name}`) };
    const section = noted("The listener of this name in your Gateway.", name);
    return specObject(type, own, {
      targetRefs: [
        { group: gatewayGroup, kind: "Gateway", name: gateway.name, sectionName: section },
      ],
      connection: { connectionLimit: { value: connectionsMax } },
      timeout: idleMs === undefined ? undefined : { tcp: { idleTimeout: gatewayDuration(idleMs) } },
    });
  });
}

/** HTTP/3 has no settings here. Envoy Gateway disables it for callers with client certificates. */
function callersOverQuic({ policy, report }: EnvoyContext): TreeMap {
  const { tls } = policy.proxies.listener;
  const { listeners = [] } = policy.proxies.gateway;
  if (!listeners.some(({ protocol }) => protocol === "HTTPS")) {
    report({
      id: "HG367",
      spot: { service: undefined, path: ["proxies", "gateway", "listeners"] },
      message: "HTTP/3 adds a listener to each HTTPS listener, and the policy does not name these",
      hint: "listeners: [{name: https, port: 443, protocol: HTTPS}], as in the Gateway",
    });
  }
  if (tls !== undefined && asksForCertificate(tls)) {
    report({
      id: "HG359",
      spot: { service: undefined, path: ["proxies", "listener", "http3"] },
      message: "Envoy Gateway does not support HTTP/3 with client certificates",
      hint: "leave http3 out, or tls.mutual",
    });
  }
  return {};
}

/** Settings for clients' certificates. The Gateway has the server's certificate. */
function callerTls(tls: ListenerTls): TreeMap {
  const note =
    "Its ca.crt validates callers. Your Gateway's listener names the certificate that they see.";
  return {
    minVersion: gatewayTlsVersions[tls.versionMin],
    clientValidation:
      tls.kind === "secret" && tls.isMutual
        ? {
            caCertificateRefs: noted(note, [{ group: "", kind: "Secret", name: tls.secret }]),
            subjectAltNames: callerNames(tls.subjectAltNames),
          }
        : undefined,
  };
}

/** Envoy Gateway's values. Source: ClientTrafficPolicy, TLSVersion. */
const gatewayTlsVersions = { TLSv1_2: "1.2", TLSv1_3: "1.3" } as const;

function callerNames(names: readonly string[]): TreeMap | undefined {
  if (names.length === 0) return undefined;
  const namesOf = (kind: string): readonly Tree[] | undefined => {
    const found = names.filter((name) => sanType(name) === kind);
    return found.length === 0 ? undefined : found.map((value) => ({ type: "Exact", value }));
  };
  return { dnsNames: namesOf("DNS"), uris: namesOf("URI"), ipAddresses: namesOf("IP_ADDRESS") };
}

/** Formats a word as Envoy Gateway does: `UnescapeAndRedirect`. */
function capitalized(word: string): string {
  return `${word.charAt(0).toUpperCase()}${word.slice(1)}`;
}
