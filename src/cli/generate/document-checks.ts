import { readEnvoyImage } from "../../app/config/envoy-image.js";
import { readObjectSchemas } from "../../app/policy/object-schemas.js";
import { envoyCheck } from "../../generate/check/check-documents.js";
import { objectCheck } from "../../generate/check/check-objects.js";
import { EnvoyApi } from "../../generate/check/envoy-api.js";
import type { DocumentCheck } from "../../generate/generate.js";
import type { Target } from "../../generate/targets.js";

/**
 * What looks at the documents of a target before anybody gets them. What it takes is read where
 * there is something to look at: a policy that is refused does not wait for it.
 *
 * @param api Envoy's API. Default: read from what is installed
 */
export async function documentChecks(
  target: Target,
  api?: EnvoyApi,
): Promise<readonly DocumentCheck[]> {
  const envoy: DocumentCheck = (documents, options) =>
    envoyCheck(api ?? new EnvoyApi(readEnvoyImage()))(documents, options);
  // Whole proxies hold no objects, and the validator takes a while to load.
  if (target === "envoy") return [envoy];
  const { ObjectSchemas } = await import("../../generate/check/object-schemas.js");
  const objects: DocumentCheck = (documents, options) =>
    objectCheck(new ObjectSchemas(readObjectSchemas()))(documents, options);
  return [envoy, objects];
}
