import { readFileSync } from "node:fs";
import type { SchemaTexts } from "../generate/check/object-schemas.js";

/** Beside the check that takes them, in a checkout and in a build. */
const folder = new URL("../generate/check/schemas/", import.meta.url);

/** What Kubernetes, Istio and Envoy Gateway publish of their objects. */
export function readObjectSchemas(): SchemaTexts {
  return {
    kubernetes: readFileSync(new URL("kubernetes.jsonl", folder), "utf8"),
    customResources: readFileSync(new URL("custom-resources.jsonl", folder), "utf8"),
  };
}
