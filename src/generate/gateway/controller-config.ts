import { metadata } from "../base/custom-object.js";
import { noted, type TreeMap } from "../base/document.js";
import type { GenerateOptions, ImageName } from "../base/generator.js";
import { renderYaml } from "../base/render.js";
import type { EnvoyContext } from "../envoy/base/context.js";
import { envoyGatewayVersion, gatewayDuration } from "./gateway-names.js";

/** The ConfigMap with Envoy Gateway's own configuration. */
const controllerPlace = { name: "envoy-gateway-config", namespace: "envoy-gateway-system" };

/**
 * Returns Envoy Gateway's own settings: Headgate in place of its rate-limit service, and permission
 * to patch. Source: Envoy Gateway, EnvoyGateway.
 */
export function controllerConfig(
  context: EnvoyContext,
  { isLimiting }: { readonly isLimiting: boolean },
): TreeMap {
  return {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: metadata(controllerPlace),
    data: { "envoy-gateway.yaml": renderYaml(settings(context, isLimiting)) },
  };
}

function settings(context: EnvoyContext, isLimiting: boolean): TreeMap {
  const { rateLimitTimeoutMs, deniesWithoutAnswer } = context.policy.proxies.headgate;
  return {
    apiVersion: envoyGatewayVersion,
    kind: "EnvoyGateway",
    gateway: { controllerName: "gateway.envoyproxy.io/gatewayclass-controller" },
    extensionApis: { enableEnvoyPatchPolicy: true },
    provider: {
      type: "Kubernetes",
      kubernetes: isLimiting
        ? { rateLimitDeployment: rateLimitDeployment(context.options) }
        : undefined,
    },
    rateLimit: isLimiting
      ? {
          backend: {
            type: "Redis",
            redis: {
              url: noted(
                "The Redis that all replicas share.",
                "redis.redis.svc.cluster.local:6379",
              ),
            },
          },
          timeout: gatewayDuration(rateLimitTimeoutMs),
          failClosed: deniesWithoutAnswer,
        }
      : undefined,
  };
}

const imageNote = "The image that you have built and pushed; set it with --image.";
const defaultImage = "registry.example/headgate:0.1.0";

function imageText({ repository, tag, digest }: ImageName): string {
  const tagged = tag === undefined ? repository : `${repository}:${tag}`;
  return digest === undefined ? tagged : `${tagged}@${digest}`;
}

/** The pods that Envoy Gateway itself starts. Only their image has to change. */
function rateLimitDeployment({ replicas, image }: GenerateOptions): TreeMap {
  return {
    replicas,
    container: {
      image: image === undefined ? noted(imageNote, defaultImage) : imageText(image),
      env: [
        { name: "HEADGATE_REPLICAS", value: String(replicas) },
        noted("Its Envoys do not tell callers when to retry.", {
          name: "HEADGATE_RETRY_AFTER_HEADER",
          value: "true",
        }),
      ],
    },
  };
}
