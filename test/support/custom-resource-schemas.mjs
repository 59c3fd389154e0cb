/**
 * Makes custom-resources.jsonl: of the definitions that Istio and Envoy Gateway publish for their
 * objects, what the kinds below can hold, without texts, a kind of a version a line. To make it
 * again, where Go's module proxy can be reached:
 *
 *   go mod download -json istio.io/api@v1.22.0 istio.io/api@v1.27.0 istio.io/api@v1.31.1 \
 *     github.com/envoyproxy/gateway@v1.{2.8,3.0,4.0,5.0,6.0,7.0,8.0,9.1}
 *                                                           (prints the folders, "Dir")
 *   node test/support/custom-resource-schemas.mjs <Dir of the first>...
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { argv } from "node:process";
import { fileURLToPath } from "node:url";
import { parseAllDocuments } from "yaml";

const kinds = {
  istio: ["DestinationRule", "EnvoyFilter", "ServiceEntry", "Sidecar", "VirtualService"],
  gateway: [
    "BackendTLSPolicy",
    "BackendTrafficPolicy",
    "ClientTrafficPolicy",
    "EnvoyExtensionPolicy",
    "EnvoyPatchPolicy",
    "EnvoyProxy",
    "ReferenceGrant",
  ],
};

/** What the API asks of every object of a namespace. Source: Kubernetes, object names. */
const metadata = {
  type: "object",
  required: ["name", "namespace"],
  properties: {
    name: {
      type: "string",
      maxLength: 253,
      pattern: "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
    },
    namespace: { type: "string", maxLength: 63, pattern: "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" },
    labels: { type: "object", additionalProperties: { type: "string", maxLength: 63 } },
    annotations: { type: "object", additionalProperties: { type: "string" } },
  },
  additionalProperties: false,
};

/** Of EnvoyProxy only what is made: the rest holds a whole pod. */
const keptOfEnvoyProxy = ["backendTLS", "bootstrap", "mergeGateways"];

const lines = argv.slice(2).flatMap((folder) => {
  const [, version = ""] = /@v([0-9.]+)$/.exec(folder) ?? [];
  const product = folder.includes("istio.io") ? "istio" : "gateway";
  const files =
    product === "istio"
      ? [join(folder, "kubernetes/customresourcedefinitions.gen.yaml")]
      : readdirSync(join(folder, "charts/gateway-helm"), { recursive: true })
          .filter((name) => /(gateway\.envoyproxy\.io_[a-z]+|gatewayapi-crds)\.yaml$/.test(name))
          .sort()
          .map((name) => join(folder, "charts/gateway-helm", name));
  return files
    .flatMap((file) => parseAllDocuments(readFileSync(file, "utf8")))
    .map((document) => document.toJS())
    .filter((crd) => kinds[product].includes(crd?.spec?.names?.kind))
    .map((crd) => line({ product, version, crd, each: versionOf(crd) }));
});
writeFileSync(
  fileURLToPath(
    new URL("../../src/generate/check/schemas/custom-resources.jsonl", import.meta.url),
  ),
  [...lines].sort().join(""),
);

/** The first API version is the newest one; but for one, the others say the same. */
function versionOf({ spec }) {
  const { names, versions } = spec;
  const old = names.kind === "ReferenceGrant" ? "v1beta1" : undefined;
  return versions.find(({ name }) => name === old) ?? versions[0];
}

/** One kind of one API version. */
function line({ product, version, crd, each }) {
  const { group, names } = crd.spec;
  const { spec } = each.schema.openAPIV3Schema.properties;
  if (names.kind === "EnvoyProxy") {
    spec.properties = Object.fromEntries(
      Object.entries(spec.properties).filter(([name]) => keptOfEnvoyProxy.includes(name)),
    );
  }
  const schema = {
    type: "object",
    required: ["apiVersion", "kind", "metadata", "spec"],
    properties: {
      apiVersion: { type: "string" },
      kind: { type: "string" },
      metadata,
      spec: strip(spec),
    },
    additionalProperties: false,
  };
  const apiVersion = `${group}/${each.name}`;
  return `${JSON.stringify({ product, version, apiVersion, kind: names.kind, schema })}\n`;
}

/** The part of a schema that says what is valid. Unknown names, which are pruned, are not. */
function strip(schema) {
  const kept = {};
  for (const name of [
    ...["type", "enum", "required", "pattern", "minimum", "maximum", "minLength", "maxLength"],
    ...["minItems", "maxItems", "minProperties", "maxProperties"],
  ]) {
    if (schema[name] !== undefined) kept[name] = schema[name];
  }
  if (schema["x-kubernetes-int-or-string"] === true) kept.type = ["integer", "string"];
  for (const name of ["oneOf", "anyOf", "allOf"]) {
    const says = kept.type === undefined || !Array.isArray(kept.type);
    if (schema[name] !== undefined && says) kept[name] = schema[name].map(strip);
  }
  if (schema.not !== undefined) kept.not = strip(schema.not);
  if (schema.items !== undefined) kept.items = strip(schema.items);
  if (schema.properties !== undefined) {
    kept.properties = Object.fromEntries(
      Object.entries(schema.properties).map(([name, one]) => [name, strip(one)]),
    );
  }
  const { additionalProperties } = schema;
  if (typeof additionalProperties === "object") {
    kept.additionalProperties = strip(additionalProperties);
  } else if (
    schema.type === "object" &&
    schema.properties !== undefined &&
    schema["x-kubernetes-preserve-unknown-fields"] !== true
  ) {
    kept.additionalProperties = false;
  }
  return kept;
}
