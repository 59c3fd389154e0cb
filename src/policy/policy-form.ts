import { domainForms } from "./limits/domain.js";
import { proxies } from "./proxies/proxies.js";
import { quotasMax } from "./quotas/quota-list.js";
import { quota } from "./quotas/quota-policy.js";
import { service } from "./services/service-form.js";
import { servicesMax } from "./services/service-list.js";
import { asWritten, flag, list, map, readBy, ruledText, words } from "./text/form.js";
import { field, innerBy, object } from "./text/object.js";
import { nameRule } from "./text/text-rules.js";

/** `metadata` of a policy file. */
const metadata = object(
  {
    title: "metadata",
    docs: "What the policy is called.",
    later: ["namespace", "labels", "annotations"],
  },
  {
    name: field(ruledText(nameRule), "The policy's name.", { needs: "the policy's name" }),
    endMarker: field(flag, "Whether the file ends with `...`, and is refused without it.", {
      default: false,
    }),
  },
  {
    data: ({ name }) => name,
    check(block, _, { endMarker }) {
      // Half a file may be right in all that it says, and lack limits: so it says that it ends.
      if (!endMarker || /\n\.\.\.\s*$/.test(block.reader.source.text)) return;
      const message = "the file has no end marker, so a part of it may be missing";
      block.report("endMarker", { id: "HG114", message, expected: "... as its last line" });
    },
  },
);

/** `spec` of a policy file. */
export const spec = object(
  {
    title: "spec",
    docs: "Limits, services, quotas and proxies.",
    needed: [["rateLimits", "services", "quotas", "proxies"]],
  },
  {
    rateLimits: field(
      asWritten(list(map(domainForms.headgate))),
      "Who may go: domains and their limits.",
    ),
    services: field(
      asWritten(list(map(service), servicesMax)),
      "What protects each upstream service.",
    ),
    quotas: field(
      asWritten(list(map(quota), quotasMax)),
      "What Envoys let pass by themselves, without a call for each request.",
    ),
    proxies: field(
      asWritten(map(proxies)),
      "What holds for every proxy. In one file of a policy only.",
    ),
  },
);

/** A name whose value is fixed: it says what kind of file this is. */
function fixed(name: string, value: string) {
  return readBy(words(value), (reader, place) =>
    reader.readChoice(place, [value], { id: "HG111", what: `the ${name} of a policy` }),
  );
}

const apiVersion = "headgate.dev/v1alpha1";

const metadataExpected = "{name: ...}";
const specExpected = "a map with rateLimits, services, quotas, proxies or several of them";

/** A policy file. */
export const policyForm = object(
  {
    title: "a policy",
    docs: "A policy of Headgate: who may go, what a service can take, and who goes first.",
  },
  {
    apiVersion: field(fixed("apiVersion", apiVersion), "The version of this language.", {
      needs: apiVersion,
    }),
    kind: field(fixed("kind", "Policy"), "What this file is.", { needs: "Policy" }),
    metadata: field(
      innerBy(metadata, (block) => ({ name: metadata.read(block) }), metadataExpected),
      "What the policy is called.",
      { needs: metadataExpected },
    ),
    spec: field(
      innerBy(spec, (block) => block, specExpected),
      "What it says.",
      { needs: specExpected },
    ),
  },
);
