/**
 * Makes kubernetes.jsonl: of Kubernetes' own OpenAPI document, what the kinds below can hold,
 * without its texts, a definition a line as a JSON Schema; and of the definitions of the Prometheus
 * operator and cert-manager three more. To make it again, where Go's module proxy can be reached:
 *
 *   go mod download -json k8s.io/kubernetes@v1.36.3        (prints the folder, "Dir")
 *   go mod download -json github.com/prometheus-operator/prometheus-operator@v0.85.0
 *   go mod download -json github.com/cert-manager/cert-manager@v1.19.1
 *   cd <Dir of the second>/example/prometheus-operator-crd
 *   node <here>/kubernetes-schemas.mjs <Dir of the first>/api/openapi-spec/swagger.json \
 *     monitoring.coreos.com_servicemonitors.yaml monitoring.coreos.com_prometheusrules.yaml \
 *     <Dir of the third>/deploy/crds/cert-manager.io_certificates.yaml
 */
import { readFileSync, writeFileSync } from "node:fs";
import { argv } from "node:process";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";

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
  kept[name] = definition(document.definitions[name]);
}
for (const file of argv.slice(3)) {
  const { spec } = parse(readFileSync(file, "utf8"));
  const [{ name: version, schema: published }] = spec.versions;
  const { properties } = published.openAPIV3Schema;
  const prefix = spec.group.split(".").reverse().join(".");
  kept[`${prefix}.${spec.names.kind}`] = definition({
    type: "object",
    required: ["apiVersion", "kind", "metadata", "spec"],
    properties: {
      apiVersion: { type: "string" },
      kind: { type: "string" },
      metadata: { $ref: "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta" },
      spec: properties.spec,
    },
    "x-kubernetes-group-version-kind": [{ group: spec.group, version, kind: spec.names.kind }],
  });
}
const lines = Object.keys(kept)
  .sort()
  .map((name) => `${JSON.stringify({ name, ...kept[name] })}\n`);
writeFileSync(
  fileURLToPath(new URL("../../src/generate/check/schemas/kubernetes.jsonl", import.meta.url)),
  lines.join(""),
);

/** A schema, and the `apiVersion kind` of objects that it is for. */
function definition(published) {
  const groups = published["x-kubernetes-group-version-kind"];
  const kinds = groups?.map(({ group, version, kind }) => {
    return `${group === "" ? version : `${group}/${version}`} ${kind}`;
  });
  return { kinds, schema: strip(published) };
}

/**
 * The part of a schema that says what is valid; notes what it refers to. Names that are not known,
 * which Kubernetes drops, are mistakes here.
 */
function strip(schema) {
  const reference = schema.$ref?.replace("#/definitions/", "");
  if (reference !== undefined) {
    waiting.push(reference);
    return { $ref: reference };
  }
  const { required, enum: words, pattern, properties, items, additionalProperties } = schema;
  const isEither = schema["x-kubernetes-int-or-string"] || schema.format === "int-or-string";
  const rest = additionalProperties && strip(additionalProperties);
  return {
    type: isEither ? ["integer", "string"] : schema.type,
    required,
    enum: words,
    pattern,
    minLength: schema.minLength,
    minItems: schema.minItems,
    items: items && strip(items),
    properties:
      properties &&
      Object.fromEntries(Object.entries(properties).map(([name, one]) => [name, strip(one)])),
    // Without either the API takes any object (FieldsV1).
    additionalProperties: rest ?? (properties ? false : undefined),
  };
}
