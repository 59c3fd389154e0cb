import type { ParsedNode } from "yaml";
import { delayUsMax } from "../../core/limits/bucket.js";
import type { FallbackRoute, OverLimit } from "../../core/limits/limit.js";
import { quoteText } from "../problems/problem.js";
import type { Block } from "../text/block.js";
import { duration, number, ruledText } from "../text/form.js";
import type { NodeReader } from "../text/node-reader.js";
import { field, inner, object } from "../text/object.js";
import type { DurationBounds, NumberBounds } from "../text/quantities.js";
import { requestHeaders } from "../text/request-headers.js";

/** Bounds of the time for which a limit may delay a request. */
const delayBounds: DurationBounds = { minMs: 1, maxMs: delayUsMax / 1_000 };

const headersExpected = "headers by name, such as {x-over-limit: yes}";

const delay = object(
  { title: "a delay", docs: "Spreads bursts." },
  {
    max: field(
      duration(delayBounds),
      "The longest delay. Requests that would wait longer are refused.",
      { needs: "the longest delay, such as 200ms", larger: "looser", as: "maxMs" },
    ),
  },
);

const annotate = object(
  { title: "an annotate", docs: "Lets requests pass, with headers that tell the upstream." },
  {
    headers: field(
      requestHeaders(headersExpected),
      "Headers of the request to the upstream. In ext_proc, those of the same names that callers " +
        "send are removed.",
      { needs: headersExpected },
    ),
  },
);

/** The name of a cluster, as a header contains it. */
const clusterName = ruledText({
  charsMax: 256,
  forbidden: /[^!-~]/,
  expected: "a cluster's name as Envoy has it, such as cheap-model",
});

const oneHeader = "a header and its value, such as {x-tier: cheap}";
const fallbackExpected = "cluster: a cluster's name, or header: {x-tier: cheap}";

const fallback = object(
  {
    title: "a fallback",
    docs: "Lets requests pass to another cluster, or by another route.",
    exclusive: [["cluster", "header"]],
    needed: [["cluster", "header"]],
  },
  {
    cluster: field(clusterName, "The Envoy cluster that requests go to instead."),
    header: field(
      requestHeaders(oneHeader, 1),
      "A header that a route of your own configuration looks at.",
    ),
  },
  {
    data({ cluster, header: headers = [] }): FallbackRoute | undefined {
      if (cluster !== undefined) return { kind: "cluster", cluster };
      const [header] = headers;
      return header && { kind: "header", header };
    },
    check(block) {
      if (!block.isEmpty) return;
      const message = '"fallback" does not say where requests go';
      block.reader.report(block.fields.node, { id: "HG125", message, expected: fallbackExpected });
    },
  },
);

const softRows = {
  annotate: field(
    inner(annotate, "headers: {x-over-limit: yes}"),
    "Lets requests pass, with headers that tell the upstream.",
  ),
  fallback: field(
    inner(fallback, fallbackExpected),
    "Lets requests pass to another cluster, or by another route. Needs ext_proc.",
  ),
};

/** Ways to handle requests over a limit other than refusing or delaying them. */
export type SoftAnswer = Exclude<OverLimit, { kind: "delay" }>;

interface ReadSoftAnswer {
  readonly annotate: typeof annotate.defaults | undefined;
  readonly fallback: FallbackRoute | undefined;
}

function softAnswer({ annotate: told, fallback: to }: ReadSoftAnswer): SoftAnswer | undefined {
  if (told?.headers !== undefined) return { kind: "annotate", headers: told.headers };
  return to && { kind: "fallback", to };
}

function refuseEmpty(block: Block, expected: string): void {
  if (!block.isEmpty) return;
  const message = '"over" says nothing';
  block.reader.report(block.fields.node, { id: "HG125", message, expected });
}

const softNames = ["annotate", "fallback"] as const;
const overNames = ["delay", ...softNames] as const;

/** `over` of a limit. */
export const limitOver = object(
  {
    title: "an over",
    docs: "What happens to requests over the limit.",
    exclusive: [overNames],
    needed: [overNames],
  },
  {
    delay: field(
      inner(delay),
      "Holds requests until they fit, with `inExtProc`; others are refused.",
    ),
    ...softRows,
  },
  {
    data({ delay: held, ...soft }): OverLimit | undefined {
      if (held?.maxMs !== undefined) return { kind: "delay", maxMs: held.maxMs };
      return softAnswer(soft);
    },
    check(block) {
      refuseEmpty(block, "delay: {max: 200ms}, annotate or fallback");
    },
  },
);

/** `over` of a budget. */
export const budgetOver = object(
  {
    title: "an over of a budget",
    docs: "What happens to calls that do not fit.",
    exclusive: [softNames],
    needed: [softNames],
  },
  softRows,
  {
    data: softAnswer,
    check: (block) => refuseEmpty(block, "annotate or fallback"),
  },
);

const warnBounds: NumberBounds = { min: 0, max: 1, isMinExcluded: true };

/** `warnAt`: ratio of the limit in use, above 0 to 1. */
export const warnAt = number(warnBounds);

/** `warnHeaders`. */
export const warnHeaders = requestHeaders("headers by name, such as {x-near-limit: yes}");

/** Warns of a cluster that no service of the policy has. */
export function warnOfCluster(reader: NodeReader, node: ParsedNode, cluster: string): void {
  reader.warn(node, {
    id: "HG255",
    message: `no service of the policy has the cluster ${quoteText(cluster)}`,
    expected: "a service, or one of its `clusters`, unless your own configuration has it",
  });
}
