import { readEnvoyImage } from "../../app/config/envoy-image.js";
import { readObjectSchemas } from "../../app/policy/object-schemas.js";
import type { Target } from "../../generate/base/generator.js";
import { envoyCheck } from "../../generate/check/check-documents.js";
import { objectCheck } from "../../generate/check/check-objects.js";
import { EnvoyApi } from "../../generate/check/envoy-api.js";
import type { DocumentCheck } from "../../generate/generate.js";

/**
 * What looks at the documents of a target before anybody gets them.
 *
 * @param api Envoy's API. Default: read from what is installed
 */
export async function documentChecks(
  target: Target,
  api = new EnvoyApi(readEnvoyImage()),
): Promise<readonly DocumentCheck[]> {
  const envoy = envoyCheck(api);
  // Whole proxies hold no objects, and the validator takes a while to load.
  if (target === "envoy") return [envoy];
  const { ObjectSchemas } = await import("../../generate/check/object-schemas.js");
  return [envoy, objectCheck(new ObjectSchemas(readObjectSchemas()))];
}
