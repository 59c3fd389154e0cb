import type { Document } from "../base/document.js";
import type { GeneratedPolicy } from "../base/generator.js";
import { renderDocument } from "../base/render.js";
import { type ObjectFile, objectFiles } from "./objects.js";
import { TemplateSource, templateText, wrapTemplate } from "./template-source.js";
import { valueNames, valueRow } from "./value-rows.js";
import type { KubernetesValues } from "./value-source.js";
import { valuesSchema, valuesTree } from "./values-schema.js";

/** Version of the chart and of what it installs, as in package.json. */
export const chartVersion = "0.1.0";

/** Returns a Helm chart that installs the same objects as the plain manifests. */
export function chartDocuments(
  policy: GeneratedPolicy,
  values: KubernetesValues,
): readonly Document[] {
  return [
    {
      path: "chart/Chart.yaml",
      kind: { format: "yaml", is: "values" },
      title: "helm install headgate k8s/chart --namespace headgate",
      parts: [
        {
          apiVersion: "v2",
          name: "headgate",
          description: "Rate limiting and admission control for Envoy fleets.",
          type: "application",
          version: chartVersion,
          appVersion: chartVersion,
          kubeVersion: ">=1.25.0-0",
          keywords: ["envoy", "rate-limiting", "admission-control"],
          annotations: { "artifacthub.io/license": "Apache-2.0" },
        },
      ],
    },
    {
      path: "chart/values.yaml",
      kind: { format: "yaml", is: "values" },
      title: "Settings of an installation. values.schema.json checks every value.",
      parts: [valuesTree(values)],
    },
    {
      path: "chart/values.schema.json",
      kind: { format: "json", is: "schema" },
      title: "",
      parts: [valuesSchema()],
    },
    { ...plainText("chart/README.md"), parts: [chartReadme()] },
    { ...plainText("chart/templates/NOTES.txt"), parts: [notes] },
    ...objectFiles.map((file) => templateOf(file, policy)),
  ];
}

/** Renders the same trees as in plain manifests, with Helm actions in place of values. */
function templateOf(
  { file, title, condition, build }: ObjectFile,
  policy: GeneratedPolicy,
): Document {
  const yaml = renderDocument(
    {
      path: file,
      kind: { format: "yaml", is: "kubernetes" },
      title,
      parts: build(new TemplateSource()),
    },
    { target: "kubernetes", policy },
  );
  const text = wrapTemplate(templateText(yaml), condition);
  return { ...plainText(`chart/templates/${file}`), parts: [text] };
}

function plainText(path: string): Omit<Document, "parts"> {
  return { path, kind: { format: "text" }, title: "" };
}

/** Notes that Helm prints after an installation. */
const notes = `Headgate is {{ .Values.name }} in the namespace {{ .Release.Namespace }}.
{{- if .Values.redis.enabled }}

Its replicas share a Redis. Create its Secret, unless it exists already:

  kubectl -n {{ .Release.Namespace }} create secret generic {{ .Values.redis.secretName }} \\
    --from-literal=url=redis://redis.redis.svc.cluster.local:6379 \\
    --from-literal=auth="headgate:\${REDIS_PASSWORD:?set it to the password of that user}"

Redis keeps what operators change (overrides, freezes, the policy with HEADGATE_POLICY_SOURCE=store,
the audit log). Run it with \`appendonly yes\` and a persistent volume.
{{- end }}
{{- if .Values.waitingRooms.secretName }}

Waiting rooms sign tickets with the Secret {{ .Values.waitingRooms.secretName }} (keys). Create it,
unless it exists already:

  kubectl -n {{ .Release.Namespace }} create secret generic {{ .Values.waitingRooms.secretName }} \\
    --from-literal=keys="$(openssl rand -base64 32)"
{{- end }}
{{- if .Values.tls.enabled }}

Both ports use TLS, with the Secret {{ .Values.tls.secretName }} (tls.crt, tls.key and ca.crt)
{{- if .Values.certManager.enabled }} from cert-manager{{ end }}.
{{- end }}
{{- if not (and .Values.tls.enabled .Values.tls.clientCertificates) }}

WARNING: proxies need no certificate. Anyone who reaches the ports can act as a proxy: request
decisions, report usage and refund hits. Restrict access with a mesh or a network policy.
{{- end }}
{{- if .Values.networkPolicy.enabled }}

Label the namespaces whose proxies may call Headgate:
{{- range $name, $value := .Values.networkPolicy.clientLabels }}

  kubectl label namespace NAME {{ $name }}={{ $value }}
{{- end }}
{{- end }}

A standalone Envoy calls
{{ .Values.name }}-pods.{{ .Release.Namespace }}.svc.cluster.local:{{ int .Values.ports.grpc }},
a mesh or a gateway calls the Service {{ .Values.name }}.

  kubectl -n {{ .Release.Namespace }} rollout status deployment/{{ .Values.name }}
`;

/** Returns the text of `helm show readme`: how to install the chart, and all of its values. */
function chartReadme(): string {
  const rows = valueNames.map((name) => {
    const { docs, defaultValue } = valueRow(name);
    // The policy has comments of its own, and does not fit into a table row.
    const shown = name === "policy" ? "a first policy" : `\`${JSON.stringify(defaultValue)}\``;
    return `| \`${name}\` | ${shown} | ${docs.replaceAll("|", "\\|")} |`;
  });
  return `${head}\n${rows.join("\n")}\n`;
}

const head = `# Headgate

Rate limiting and admission control for Envoy fleets.

    helm install headgate . --namespace headgate --create-namespace --values my-values.yaml

To serve the chart from a registry:

    helm package .
    helm push headgate-*.tgz oci://registry.example/charts

The Secrets that it expects, and what proxies need, are in the notes that an installation prints.

## Values

values.schema.json checks them: Helm refuses a name that it does not know, and a value of another
type. Defaults below are those of the program; values.yaml has what the policy needs.

| value | default | what it is |
|---|---|---|`;
