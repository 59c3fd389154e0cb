import { valueNames, valueRow } from "./value-rows.js";

/** What `helm show readme` prints: how to install the chart, and all of its values. */
export function chartReadme(): string {
  const rows = valueNames.map((name) => {
    const { docs, defaultValue } = valueRow(name);
    // The policy has its own comments, and is no line of a table.
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
