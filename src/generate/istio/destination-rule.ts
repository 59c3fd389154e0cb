import type { ServicePolicy } from "../../policy/services/service-policy.js";
import type { UpstreamTls } from "../../policy/upstream/client-tls.js";
import type { HashSource, SlowStartPolicy } from "../../policy/upstream/load-balancing.js";
import type { OutlierDetectionPolicy } from "../../policy/upstream/outlier-detection.js";
import { type ObjectPlace, specObject } from "../base/custom-object.js";
import { noted, type Tree, type TreeMap } from "../base/document.js";
import { formatMinorVersion, isAtLeastVersion } from "../base/generate-options.js";
import type { MinorVersion } from "../base/generator.js";
import type { EnvoyContext } from "../envoy/base/context.js";
import { isAddress } from "../envoy/base/domains.js";
import { durationText } from "../envoy/base/values.js";
import { h2UpgradePolicy, isHeldByCallers, limitedPool, openPool } from "./connection-pool.js";
import type { MeshName } from "./mesh-name.js";

/** First version of Istio whose DestinationRule has a retry budget. */
const retryBudgetSince: MinorVersion = { major: 1, minor: 27 };

/**
 * Returns a service's outlier detection, and breakers if callers enforce them, for all callers:
 * sidecars and gateways.
 *
 * Source: Istio, DestinationRule.
 */
export function destinationRule(
  service: ServicePolicy,
  { host }: MeshName,
  context: EnvoyContext & { readonly place: ObjectPlace },
): TreeMap {
  const { outlierDetection: outliers } = service;
  return specObject(
    { apiVersion: "networking.istio.io/v1", kind: "DestinationRule" },
    context.place,
    {
      host,
      trafficPolicy: {
        connectionPool: callersPool(service, context),
        loadBalancer: loadBalancer(service, context),
        outlierDetection: outliers && outlierDetection(outliers),
        retryBudget: retryBudget(service, context),
        tls: upstreamTls(service, context),
      },
    },
  );
}

function callersPool(service: ServicePolicy, context: EnvoyContext): Tree {
  const upgrade = h2UpgradePolicy(service);
  if (isHeldByCallers(service, context.options)) {
    const { tcp, http } = limitedPool(service, context);
    return { tcp, http: { ...http, ...upgrade } };
  }
  const { tcp, http } = openPool(service);
  const why = "No limits here: its own sidecar enforces them.";
  return noted(why, { tcp, http: { ...http, ...upgrade } });
}

/** A prime, and Envoy's default. istiod requires a value. */
const tableSize = 65_537;

/** First version of Istio whose `warmup` sets more than the duration. */
const warmupSince: MinorVersion = { major: 1, minor: 27 };

/** Istio adds the hash policy to routes. Undefined: Istio's default. */
function loadBalancer(service: ServicePolicy, context: EnvoyContext): TreeMap | undefined {
  const { hash, slowStart, zoneAware } = service.loadBalancing;
  if (hash !== undefined) return { consistentHash: { ...hashSource(hash), maglev: { tableSize } } };
  if (slowStart === undefined && zoneAware === undefined) return undefined;
  return {
    simple: "LEAST_REQUEST",
    ...(slowStart && warmup(slowStart, context)),
    localityLbSetting: zoneAware && locality(service, context),
  };
}

function warmup(slowStart: SlowStartPolicy, { options }: EnvoyContext): TreeMap {
  const duration = durationText(slowStart.windowMs);
  return isAtLeastVersion(options.istioVersion, warmupSince)
    ? { warmup: { duration, minimumPercent: slowStart.weightPercentMin } }
    : { warmupDurationSecs: duration };
}

/** Istio leaves a zone when outlier detection ejects hosts, and ignores zones without it. */
function locality({ name, outlierDetection }: ServicePolicy, { report }: EnvoyContext): Tree {
  if (outlierDetection === undefined) {
    report({
      id: "HG359",
      spot: { service: name, path: ["loadBalancing", "zoneAware"] },
      message: "Istio ignores zones while outlierDetection is off",
      hint: "leave outlierDetection at its default, or leave zoneAware out",
    });
  }
  return noted("Requests stay in their zone, and leave it as its hosts are ejected.", {
    enabled: true,
  });
}

function hashSource(hash: HashSource): TreeMap {
  switch (hash.kind) {
    case "header":
      return { httpHeaderName: hash.name };
    case "query":
      return { httpQueryParameterName: hash.name };
    case "cookie":
      return { httpCookie: { name: hash.name, ttl: durationText(hash.ttlMs), path: "/" } };
    case "sourceIp":
      return { useSourceIp: true };
  }
}

/** Sidecars ignore secrets in a DestinationRule for all callers. Source: ClientTLSSettings. */
function upstreamTls(
  { name, upstream }: ServicePolicy,
  { options, report }: EnvoyContext,
): TreeMap | undefined {
  const tls = upstream?.tls;
  if (tls?.kind === "secret" && options.roles.includes("sidecar")) {
    report({
      id: "HG359",
      spot: { service: name, path: ["upstream", "tls", "secret"] },
      message:
        "Istio's sidecars do not support a secret here and would use plaintext; only " +
        "its gateways support it",
      hint: "--role edge if only gateways call it, or caFile with files that the sidecars have",
    });
  }
  return tls && clientTls(tls);
}

const secretNote =
  "In the namespace of each gateway that calls the service. Sidecars ignore it and " +
  "use plaintext.";

/** Files are read by the sidecar or gateway. An IP address cannot be sent as SNI. */
function clientTls(tls: UpstreamTls): TreeMap {
  const { serverName, subjectAltNames } = tls;
  const isMutual = tls.kind === "secret" ? tls.isMutual : tls.certificate !== undefined;
  return {
    mode: isMutual ? "MUTUAL" : "SIMPLE",
    sni: isAddress(serverName) ? undefined : serverName,
    ...(tls.kind === "secret"
      ? { credentialName: noted(secretNote, tls.secret) }
      : {
          caCertificates: tls.caFile,
          clientCertificate: tls.certificate?.certFile,
          privateKey: tls.certificate?.keyFile,
        }),
    subjectAltNames,
  };
}

function outlierDetection(policy: OutlierDetectionPolicy): TreeMap {
  return {
    consecutive5xxErrors: policy.consecutive5xx,
    consecutiveGatewayErrors: policy.consecutiveGatewayFailures,
    splitExternalLocalOriginErrors: policy.localOriginFailures === undefined ? undefined : true,
    consecutiveLocalOriginFailures: policy.localOriginFailures,
    interval: durationText(policy.intervalMs),
    baseEjectionTime: durationText(policy.baseEjectionMs),
    maxEjectionPercent: policy.ejectionPercentMax,
  };
}

/** Without retries, a budget has no effect. */
function retryBudget(service: ServicePolicy, context: EnvoyContext): Tree | undefined {
  const { circuitBreakers, retries } = service;
  const { retryBudget: budget } = circuitBreakers;
  if (budget === undefined || retries === undefined) return undefined;
  const { istioVersion } = context.options;
  if (!isAtLeastVersion(istioVersion, retryBudgetSince)) {
    context.report({
      id: "HG341",
      spot: { service: service.name, path: ["circuitBreakers", "retryBudget"] },
      message: `Istio ${formatMinorVersion(istioVersion)} does not support retry budgets`,
      hint:
        `--istio-version ${formatMinorVersion(retryBudgetSince)}, or retryBudget: ` +
        "off, and bound concurrent retries with maxRetries",
    });
    return undefined;
  }
  return { percent: budget.percent, minRetryConcurrency: budget.retriesMin };
}
