import { budget } from "./budgets/budget-form.js";
import { budgetsMax } from "./budgets/budget-list.js";
import { prices } from "./budgets/price-form.js";
import { domainForms } from "./limits/domain.js";
import { proxies } from "./proxies/proxies.js";
import { quotasMax } from "./quotas/quota-list.js";
import { quota } from "./quotas/quota-policy.js";
import { service } from "./services/service-form.js";
import { servicesMax } from "./services/service-list.js";
import { asWritten, flag, list, map, readBy, ruledText, words } from "./text/form.js";
import { field, innerBy, object } from "./text/object.js";
import { nameRule } from "./text/text-rules.js";
import { room } from "./waiting-rooms/room-form.js";
import { roomsMax } from "./waiting-rooms/room-list.js";

/** `metadata` of a policy file. */
const metadata = object(
  {
    title: "metadata",
    docs: "Metadata of the policy.",
    later: ["namespace", "labels", "annotations"],
  },
  {
    name: field(ruledText(nameRule), "The policy's name.", { needs: "the name of the policy" }),
    endMarker: field(
      flag,
      "Whether the file ends with `...`. If true, a file without it is refused.",
      {
        default: false,
      },
    ),
  },
  {
    data: ({ name }) => name,
    check(block, _, { endMarker }) {
      // A truncated file may be valid and lack limits, so the marker shows that it is complete.
      if (!endMarker || /\n\.\.\.\s*$/.test(block.reader.source.text)) return;
      const message = "the end marker is missing, so the file may be truncated";
      block.report("endMarker", { id: "HG114", message, expected: "... as its last line" });
    },
  },
);

/** `spec` of a policy file. */
export const spec = object(
  {
    title: "spec",
    docs: "Limits, services, quotas, waiting rooms, budgets and proxies.",
    needed: [["rateLimits", "services", "quotas", "waitingRooms", "budgets", "prices", "proxies"]],
  },
  {
    rateLimits: field(asWritten(list(map(domainForms.headgate))), "Domains and their rate limits."),
    services: field(
      asWritten(list(map(service), servicesMax)),
      "Upstream services and their protection.",
    ),
    quotas: field(
      asWritten(list(map(quota), quotasMax)),
      "Quotas that Envoys enforce locally, without a call for each request.",
    ),
    waitingRooms: field(
      asWritten(list(map(room), roomsMax)),
      "Virtual queues in front of services, in which visitors wait for their turn.",
    ),
    budgets: field(
      asWritten(list(map(budget), budgetsMax)),
      "Amounts of tokens, money or time that calls reserve before they run.",
    ),
    prices: field(
      asWritten(map(prices)),
      "What calls of models cost. Allowed in one file of a policy.",
    ),
    proxies: field(
      asWritten(map(proxies)),
      "Settings for all proxies. Allowed in one file of a policy.",
    ),
  },
);

/** A name with a fixed value, which identifies the kind of the file. */
function fixed(name: string, value: string) {
  return readBy(words(value), (reader, place) =>
    reader.readChoice(place, [value], { id: "HG111", what: `the ${name} of a policy` }),
  );
}

const apiVersion = "headgate.dev/v1alpha1";

const metadataExpected = "{name: ...}";
const specExpected =
  "a map with rateLimits, services, quotas, waitingRooms, budgets, prices, proxies or several " +
  "of them";

/** A policy file. */
export const policyForm = object(
  {
    title: "a policy",
    docs: "A Headgate policy: rate limits, admission control and priorities.",
  },
  {
    apiVersion: field(fixed("apiVersion", apiVersion), "The version of the policy language.", {
      needs: apiVersion,
    }),
    kind: field(fixed("kind", "Policy"), "The kind of the file.", { needs: "Policy" }),
    metadata: field(
      innerBy(metadata, (block) => ({ name: metadata.read(block) }), metadataExpected),
      "Metadata of the policy.",
      { needs: metadataExpected },
    ),
    spec: field(
      innerBy(spec, (block) => block, specExpected),
      "The contents of the policy.",
      { needs: specExpected },
    ),
  },
);
