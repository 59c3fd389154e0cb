import { policyForm } from "../../../src/policy/policy-form.js";
import { paragraphs } from "./markdown.js";
import { type SchemaSection, schemaPages } from "./schema-pages.js";

/** Pages that take what lies deeper come first; `policy.md` shows them in another order. */
const parts: readonly SchemaSection[] = [
  {
    name: "rate-limits",
    title: "Policy: rateLimits",
    purpose: "This page lists the fields of a domain, a descriptor and a limit.",
    roots: ["rateLimits[]"],
  },
  {
    name: "admission",
    title: "Policy: admission",
    purpose:
      "This page lists the fields of admission, which decides whether a service accepts a request.",
    roots: ["services[].admission", "services[].priority"],
  },
  {
    name: "concurrency",
    title: "Policy: concurrency",
    purpose: "This page lists the fields of concurrency limits, and of their feedback to Envoys.",
    roots: ["services[].concurrency"],
  },
  {
    name: "envoy",
    title: "Policy: what Envoy enforces",
    purpose:
      "This page lists what Envoys enforce for a service themselves, without calling Headgate.",
    roots: [
      "services[].circuitBreakers",
      "services[].outlierDetection",
      "services[].healthChecks",
      "services[].loadBalancing",
      "services[].retries",
      "services[].timeouts",
      "services[].localRateLimit",
      "services[].adaptiveConcurrency",
      "services[].admissionControl",
    ],
  },
  {
    name: "budgets",
    title: "Policy: budgets",
    purpose: "This page lists the fields of budgets, of prices, and of a service's `usage`.",
    roots: ["budgets[]", "prices", "services[].usage"],
  },
  {
    name: "services",
    title: "Policy: services",
    purpose: "This page lists the fields of a service, and of the descriptors of its requests.",
    roots: ["services[]"],
  },
  {
    name: "quotas",
    title: "Policy: quotas",
    purpose: "This page lists the fields of a quota, a limit that Envoys enforce themselves.",
    roots: ["quotas[]"],
  },
  {
    name: "waiting-rooms",
    title: "Policy: waitingRooms",
    purpose: "This page lists the fields of a waiting room, a virtual queue in front of a service.",
    roots: ["waitingRooms[]"],
  },
  {
    name: "proxies",
    title: "Policy: proxies",
    purpose: "This page lists the fields that apply to every generated proxy.",
    roots: ["proxies"],
  },
];

/** The pages of the policy language. */
export const policyPages = schemaPages({
  form: policyForm,
  sections: [
    ...parts,
    {
      name: "index",
      title: "Policy",
      purpose: "This page lists the fields of a policy file. Each part has its own page.",
      roots: [""],
      intro: linksToOthers(),
    },
  ],
  fileOf,
  spec: "spec",
});

/** Where a page is: as a path, or as another page links to it. The first is beside the folder. */
function fileOf(name: string, from = "index"): string {
  const folder = from === "index" ? "policy/" : "";
  return name === "index" ? `${from === "index" ? "" : "../"}policy.md` : `${folder}${name}.md`;
}

function linksToOthers(): string {
  const intro = paragraphs(
    "A policy is one or more YAML files with `kind: Policy`. It is not a Kubernetes object: " +
      "`headgate` reads the files. [Problems](problems.md) lists every mistake that it reports, " +
      "and `headgate schema` prints the JSON Schema from which these pages are generated. All " +
      "fields are optional unless marked as required. Unknown fields are rejected.",
    "Durations are written like `250ms`, `10s` or `5m`. A dash as default means that there is " +
      "none, or that it depends on other values, as described.",
  );
  const lines = ["rate-limits", "services", "admission", "concurrency", "envoy", "quotas"]
    .concat("waiting-rooms", "budgets", "proxies")
    .flatMap((name) => parts.find((one) => one.name === name) ?? [])
    .map(
      ({ name, title, purpose }) =>
        `- [${title.replace("Policy: ", "")}](${fileOf(name)}): ${purpose}`,
    );
  return `${intro}\n\n${lines.join("\n")}`;
}
