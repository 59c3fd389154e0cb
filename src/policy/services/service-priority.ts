import {
  defaultAuthPaths,
  defaultBypassPaths,
  defaultPriorityHeader,
  priorities,
} from "../../core/admission/priority.js";
import { condition } from "../cel/condition-text.js";
import { choice, flag, ruledText, words } from "../text/form.js";
import { field, inner, items, object } from "../text/object.js";
import { headerName, network, path } from "../text/service-texts.js";

/** Maximum number of rules of one service: each may run for every request. */
export const priorityRulesMax = 64;

/** Maximum number of paths of one kind, of networks, and of principals of one service. */
export const priorityItemsMax = 64;

const principal = ruledText({
  charsMax: 1_024,
  // A `*` matches any rest, and is not allowed in the middle.
  forbidden: /[^!-~]|\*(?!$)/,
  expected: "a URI in the caller's certificate, such as spiffe://shop/web or spiffe://shop/*",
});

const others = ["sources", "principals"] as const;

const trust = object(
  {
    title: "trust",
    docs: "Callers whose priority header is trusted.",
    clashing: others.map((name) => ["anyone", name]),
  },
  {
    anyone: field(flag, "Everybody's.", { default: false }),
    sources: field(
      items(network, { expected: "a list of networks", max: priorityItemsMax }),
      "CIDR blocks of callers.",
      { default: [] },
    ),
    principals: field(
      items(principal, { expected: "a list of principals", max: priorityItemsMax }),
      "URIs in client certificates. A `*` at the end matches any suffix.",
      { default: [] },
    ),
  },
  {
    data: (read) => read,
    check(block, { anyone }) {
      for (const name of anyone ? others : []) {
        if (block.field(name) !== undefined) block.refusePair(name, "anyone");
      }
    },
  },
);

const from = object(
  { title: "priority.from", docs: "The header that contains a request's class." },
  {
    header: field(headerName, "Its name.", { default: defaultPriorityHeader }),
    default: field(
      words(...priorities),
      "The class of a request that no other setting classifies.",
      {
        default: "normal",
      },
    ),
    trust: field(inner(trust), "Callers whose header is trusted. Default: none."),
  },
  { data: ({ trust: whose = trust.defaults, ...read }) => ({ ...read, trust: whose }) },
);

const rule = object(
  { title: "a rule of priority", docs: "A condition and its class." },
  {
    when: field(condition, "A CEL condition over the request.", { needs: "a condition in CEL" }),
    is: field(choice({ what: "a class" }, ...priorities), "The class it gives.", {
      needs: "the class it gives",
    }),
  },
  {
    data: ({ when, is }) => (when === undefined || is === undefined ? undefined : { when, is }),
  },
);

/** A written list replaces the default: `[]` has none of the default paths either. */
const paths = items(path, { expected: "a list of paths", max: priorityItemsMax });

/** `priority` of a service. */
export const priority = object(
  { title: "a priority", docs: "Classes of requests: which ones go first under load." },
  {
    from: field(
      inner(from),
      "The header that contains a class, and the callers that are trusted to set it.",
    ),
    rules: field(
      items(inner(rule, "a rule: {when: ..., is: ...}"), {
        expected: "a list of rules: {when: ..., is: ...}",
        max: priorityRulesMax,
      }),
      "Rules in order. The first rule whose condition is true sets the class.",
      { default: [] },
    ),
    bypassPaths: field(
      paths,
      "Paths that are neither counted nor refused. A path matches exactly, without " +
        "its query; `/static/*` matches `/static` and everything below. Default: " +
        "`/healthz`, `/livez`, `/readyz`, and `Check` and `Watch` of gRPC's health " +
        "service.",
      {
        default: defaultBypassPaths,
      },
    ),
    authPaths: field(
      paths,
      "Paths, in the same form, whose requests are critical unless another setting " +
        "classifies them. Default: `/login/*`, `/auth/*`, `/oauth/*`, `/oauth2/*`.",
      {
        default: defaultAuthPaths,
      },
    ),
  },
  {
    data: ({ from: stated = from.defaults, ...rest }) => ({ ...stated, ...rest }),
  },
);

/** Determines a request's class: bypass, then rules in order, then the header, then the default. */
export type PriorityPolicy = typeof priority.defaults;

/** Trusted callers: one match is enough. */
export type TrustPolicy = typeof trust.defaults;

/**
 * Reports whether a policy keeps the default bypass paths. Then there is no warning if a gateway
 * counts requests for them: probes reach pods without the gateway, and other requests for these
 * paths from outside should be counted.
 */
export function isDefaultBypass({ bypassPaths }: PriorityPolicy): boolean {
  return bypassPaths === priority.defaults.bypassPaths;
}
