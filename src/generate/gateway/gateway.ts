import { fallbackHeader } from "../../core/limits/request-marks.js";
import { quoteText } from "../../policy/problems/problem.js";
import type { ServicePolicy } from "../../policy/services/service-policy.js";
import { softAnswers } from "../../policy/services/soft-answers.js";
import { filledDocuments, objectName, objectsDocument } from "../base/custom-object.js";
import type { Document, Tree } from "../base/document.js";
import type {
  GeneratedPolicy,
  GenerateOptions,
  GenerateProblem,
  Generator,
} from "../base/generator.js";
import {
  broughtEnvoy,
  type EnvoyBundler,
  reportOnce,
} from "../envoy/base/bundled-envoy-version.js";
import type { EnvoyContext } from "../envoy/base/context.js";
import { reportOptions } from "../envoy/base/option-support.js";
import { reportTcpOptions } from "../envoy/base/tcp-option-support.js";
import { filterDescriptors } from "../envoy/http/rate-limit-actions.js";
import { mergedDocument } from "../merge/merged-document.js";
import { backendTrafficPolicy } from "./backend-traffic-policy.js";
import { controllerConfig } from "./controller-config.js";
import { backendTlsPolicy, extensionPolicy, referenceGrant } from "./extension-policy.js";
import { gatewayListeners, gatewayName, routePlace, ruleCluster } from "./gateway-names.js";
import { envoyMinorsAhead } from "./gateway-version.js";
import { patchPolicy, servicePatchPolicy } from "./patch-policy.js";
import { clientTrafficPolicy, envoyProxy, tcpTrafficPolicies } from "./proxy-objects.js";
import { serviceTlsPolicy } from "./service-tls.js";

const bundler: EnvoyBundler = { flag: "--gateway-version", minorsAhead: envoyMinorsAhead };

/**
 * Generates Envoy Gateway's objects: settings of each service's HTTPRoute, of the Gateway's
 * listeners and Envoys, and of Envoy Gateway itself. Gateways and HTTPRoutes belong to the user and
 * are found by name.
 */
export const generateGateway: Generator = (policy, options) => {
  const problems: GenerateProblem[] = [];
  const context = gatewayContext(policy, options, problems);
  for (const service of policy.services) {
    reportCluster(service, context);
    reportFallbacks(service, context);
  }
  reportOptions("gateway", context);
  reportTcpOptions("gateway", context);
  const merged = (document: Document, service: string | undefined): Document => {
    return mergedDocument(document, { existing: options.existing, problems, service });
  };
  const documents: readonly Document[] = [
    objectsDocument(controllerFile, controllerTitle, [
      controllerConfig(context, {
        isLimiting: policy.services.some((one) => filterDescriptors(one.rateLimit).length > 0),
      }),
    ]),
    merged(
      objectsDocument("gateway.yaml", gatewayTitle(context), [
        clientTrafficPolicy(context),
        ...tcpTrafficPolicies(context),
        ...present(envoyProxy(context)),
        ...present(patchPolicy(context)),
      ]),
      undefined,
    ),
    ...policy.services.map((service) => merged(serviceDocument(service, context), service.name)),
    objectsDocument("headgate.yaml", headgateTitle, [
      ...present(referenceGrant(context)),
      ...present(backendTlsPolicy(context)),
    ]),
  ];
  return { documents: filledDocuments(documents, problems, [controllerFile]), problems };
};

function gatewayContext(
  policy: GeneratedPolicy,
  options: GenerateOptions,
  problems: GenerateProblem[],
): EnvoyContext {
  return {
    policy,
    options: { ...options, envoyVersion: broughtEnvoy(bundler, options.gatewayVersion) },
    role: "edge",
    side: "inbound",
    // Each EnvoyExtensionPolicy has its own cluster for decisions.
    headgateClusters: {
      decisions: "headgate",
      control: "headgate_control",
      quotas: "headgate_control",
    },
    report: reportOnce(bundler, problems),
  };
}

/** Headgate drives breakers by the names of clusters, so it needs these names. */
function reportCluster(service: ServicePolicy, context: EnvoyContext): void {
  if (service.concurrency?.feedback.includes("circuitBreakers") !== true) return;
  const first = ruleCluster(service, routePlace(service, context));
  const isOfRule = (name: string): boolean => name.replace(/\/rule\/\d+/, "/rule/0") === first;
  if (service.clusters.some(isOfRule)) return;
  context.report({
    id: "HG345",
    spot: { service: service.name, path: ["clusters"] },
    message:
      "Headgate cannot drive the breaker of the service, because Envoy Gateway " +
      "gives its cluster another name",
    hint: `add clusters: ["${first}"], and the clusters of further rules of the HTTPRoute`,
  });
}

/** A route of ours would bypass the authentication of the routes that it precedes. */
function reportFallbacks(service: ServicePolicy, { policy, report }: EnvoyContext): void {
  const [cluster] = softAnswers(policy)(service).clusters;
  if (cluster === undefined) return;
  report({
    id: "HG355",
    spot: { service: service.name, path: [] },
    message: `a rule of the HTTPRoute has to lead requests that fall back to ${quoteText(cluster)}`,
    hint:
      `first of its rules: matches: [{headers: [{name: ${fallbackHeader}, value: ${cluster}}]}]; ` +
      "or write fallback: {header: {x-tier: cheap}}, and let the service choose",
  });
}

function present(tree: Tree | undefined): readonly Tree[] {
  return tree === undefined ? [] : [tree];
}

const controllerFile = "envoy-gateway.yaml";

const controllerTitle =
  "Envoy Gateway's own settings. Merge them into yours, and restart it. The " +
  "Headgate in its rate limit pods then enforces its global rate limits.";

const headgateTitle = "For Headgate's Service: who may call it, and how.";

function gatewayTitle(context: EnvoyContext): string {
  const { name, namespace } = gatewayName(context);
  return (
    `For your Gateway ${name} in namespace ${namespace}, and its ` +
    `${listenersOf(context)}.\nIf you use an EnvoyProxy, refer to it in ` +
    "spec.infrastructure.parametersRef."
  );
}

function listenersOf(context: EnvoyContext): string {
  const names = gatewayListeners(context).map((listener) => listener.name);
  return `${names.length === 1 ? "listener" : "listeners"} ${names.join(", ")}`;
}

function serviceDocument(service: ServicePolicy, context: EnvoyContext): Document {
  const { name, namespace } = routePlace(service, context);
  const title =
    `For your HTTPRoute ${name} in namespace ${namespace}. All its rules must lead ` +
    "to the service.";
  return objectsDocument(`services/${objectName(service.name)}.yaml`, title, [
    backendTrafficPolicy(service, context),
    ...present(serviceTlsPolicy(service, context)),
    ...present(extensionPolicy(service, context)),
    ...present(servicePatchPolicy(service, context)),
  ]);
}
