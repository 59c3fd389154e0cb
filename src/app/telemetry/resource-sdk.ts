import {
  detectResources,
  envDetector,
  type Resource,
  resourceFromAttributes,
} from "@opentelemetry/resources";
import { readVersion } from "../base/version.js";
import type { ServiceIdentity } from "../config/tracing-choice.js";

/** Returns the identity of this process, merged with `OTEL_RESOURCE_ATTRIBUTES`. */
export function resourceOf(identity: ServiceIdentity): Resource {
  const { serviceName, serviceNamespace, serviceInstanceId } = identity;
  const own = resourceFromAttributes({
    "service.name": serviceName,
    "service.version": readVersion(),
    ...(serviceNamespace === undefined ? {} : { "service.namespace": serviceNamespace }),
    ...(serviceInstanceId === undefined ? {} : { "service.instance.id": serviceInstanceId }),
  });
  return detectResources({ detectors: [envDetector] }).merge(own);
}
