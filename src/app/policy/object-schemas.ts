import { readFileSync } from "node:fs";
import type { SchemaTexts } from "../../generate/check/object-schemas.js";
import { ownFile } from "../base/own-file.js";

/** Reads the published schemas of the objects of Kubernetes, Istio and Envoy Gateway. */
export function readObjectSchemas(): SchemaTexts {
  return {
    kubernetes: readSchemas("kubernetes.jsonl"),
    customResources: readSchemas("custom-resources.jsonl"),
  };
}

function readSchemas(name: string): string {
  const file = ownFile(`generate/check/schemas/${name}`);
  if (file === undefined) throw new Error(`${name} is missing from this installation`);
  return readFileSync(file, "utf8");
}
