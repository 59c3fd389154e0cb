/**
 * Makes kubernetes-schema.jsonl: of Kubernetes' own OpenAPI document, what the kinds below can
 * hold, without its texts, a definition a line. To make it again, where Go's module proxy can be
 * reached:
 *
 *   go mod download -json k8s.io/kubernetes@v1.36.3        (prints the folder, "Dir")
 *   node test/support/kubernetes-schema.mjs <Dir>/api/openapi-spec/swagger.json
 */
import { readFileSync, writeFileSync } from "node:fs";
import { argv } from "node:process";
import { fileURLToPath } from "node:url";

const kinds = [
  "io.k8s.api.apps.v1.Deployment",
  "io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler",
  "io.k8s.api.core.v1.ConfigMap",
  "io.k8s.api.core.v1.Namespace",
  "io.k8s.api.core.v1.Service",
  "io.k8s.api.core.v1.ServiceAccount",
  "io.k8s.api.networking.v1.NetworkPolicy",
  "io.k8s.api.policy.v1.PodDisruptionBudget",
];

const document = JSON.parse(readFileSync(argv[2] ?? "", "utf8"));
const kept = {};
const waiting = [...kinds];
for (const name of waiting) {
  if (name in kept) continue;
  kept[name] = strip(document.definitions[name]);
}
const lines = Object.keys(kept)
  .sort()
  .map((name) => `${JSON.stringify({ name, ...kept[name] })}\n`);
writeFileSync(fileURLToPath(new URL("kubernetes-schema.jsonl", import.meta.url)), lines.join(""));

/** The part of a schema that says what is valid; notes what it refers to. */
function strip(schema) {
  const reference = schema.$ref?.replace("#/definitions/", "");
  if (reference !== undefined) {
    waiting.push(reference);
    return { $ref: reference };
  }
  const { type, format, required, enum: words, properties, items, additionalProperties } = schema;
  const groups = schema["x-kubernetes-group-version-kind"];
  return {
    type,
    format,
    required,
    enum: words,
    kinds: groups?.map(({ group, version, kind }) => ({ group, version, kind })),
    items: items && strip(items),
    additionalProperties: additionalProperties && strip(additionalProperties),
    properties:
      properties &&
      Object.fromEntries(Object.entries(properties).map(([name, one]) => [name, strip(one)])),
  };
}
