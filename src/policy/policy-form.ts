import { domainForms } from "./limits/limit-forms.js";
import { proxiesForm } from "./proxies/proxy-forms.js";
import { quotaForm } from "./quotas/quota-forms.js";
import { quotasMax } from "./quotas/quota-list.js";
import { serviceForm } from "./services/service-forms.js";
import { servicesMax } from "./services/service-list.js";
import { flag, list, map, mapForm, row, text, words } from "./text/form.js";
import { metadataShape, policyApiVersion, policyShape, specShape } from "./text/shapes.js";
import { nameRule } from "./text/text-rules.js";

const metadata = mapForm(
  { shape: metadataShape, docs: "What the policy is called.", required: ["name"] },
  {
    name: row(text(nameRule), "The policy's name."),
    endMarker: row(flag, "Whether the file ends with `...`, and is refused without it.", false),
  },
);

const spec = mapForm(
  {
    shape: specShape,
    docs: "Limits, services, quotas and proxies.",
    needed: [["rateLimits", "services", "quotas", "proxies"]],
  },
  {
    rateLimits: row(list(map(domainForms.headgate)), "Who may go: domains and their limits."),
    services: row(list(map(serviceForm), servicesMax), "What protects each upstream service."),
    quotas: row(
      list(map(quotaForm), quotasMax),
      "What Envoys let pass by themselves, without a call for each request.",
    ),
    proxies: row(map(proxiesForm), "What holds for every proxy. In one file of a policy only."),
  },
);

/** A policy file. */
export const policyForm = mapForm(
  {
    shape: policyShape,
    docs: "A policy of Headgate: who may go, what a service can take, and who goes first.",
    required: ["apiVersion", "kind", "metadata", "spec"],
  },
  {
    apiVersion: row(words(policyApiVersion), "The version of this language."),
    kind: row(words("Policy"), "What this file is."),
    metadata: row(map(metadata), "What the policy is called."),
    spec: row(map(spec), "What it says."),
  },
);
