import { isSeq } from "yaml";
import { matcherCondition } from "../cel/condition-text.js";
import { headerMatches } from "../services/descriptor-parts.js";
import { servicesMax } from "../services/service-list.js";
import { Block } from "../text/block.js";
import { number, ruledText } from "../text/form.js";
import type { Field, NodeReader } from "../text/node-reader.js";
import { field, inner, items, object, placed } from "../text/object.js";
import type { NumberBounds } from "../text/quantities.js";
import { label, quotaName } from "../text/service-texts.js";
import { domainRule } from "../text/text-rules.js";
import { type QuotaDraft, type QuotaList, quotasMax } from "./quota-list.js";
import { bucketExpected, bucketParts, quotaClasses } from "./quota-parts.js";
import {
  beforeAssignmentField,
  quotaDenial,
  quotaExpiry,
  quotaRate,
  ttlField,
} from "./quota-settings.js";

const servicesExpected = "a list of services' names; left out: all";

/** The bounds of `callsShare`. */
export const callsShareBounds: NumberBounds = { min: 0, max: 0.9 };

/** The part that is kept where a quota has no rate of its own. */
const callsShareDefault = 0.1;

/** An item of `quotas`. */
export const quota = object(
  {
    title: "a quota",
    docs: "Requests that Envoys let pass by themselves, by what Headgate assigns to them.",
  },
  {
    name: field(placed(quotaName), "Names it in buckets, metrics and generated configuration.", {
      needs: "the quota's name",
    }),
    domain: field(placed(ruledText(domainRule)), "A domain of `rateLimits`.", {
      needs: "a domain of rateLimits",
    }),
    services: field(
      items(placed(label), { expected: servicesExpected, max: servicesMax, min: 1 }),
      "Services whose requests it is for. Left out: all requests of all proxies.",
      { added: "looser" },
    ),
    match: field(headerMatches, "Headers that a request must have, all of them.", {
      added: "looser",
      default: [],
    }),
    when: field(
      matcherCondition,
      "A CEL condition over the request, evaluated by Envoy: all that conditions offer but " +
        "`lowerAscii`. Left out: all requests.",
      { added: "looser" },
    ),
    bucket: field(
      bucketParts,
      "What is counted together: in this order a descriptor of the domain.",
      { needs: bucketExpected },
    ),
    rate: field(
      inner(quotaRate),
      "Its limit, of a hit an hour or more and always `gcra`. Left out: the limits of the " +
        "domain that its buckets meet.",
    ),
    classes: field(inner(quotaClasses), "Who gets more than others. Left out: all the same."),
    callsShare: field(
      number(callsShareBounds),
      "The part of the rate that is kept for RLS calls while the limit is more than half " +
        "used; default: none where `rate` is given.",
      {
        isGenerated: false,
        larger: "stricter",
        as: "callsShareRatio",
        dependentDefault: callsShareDefault,
      },
    ),
    ttl: ttlField,
    beforeAssignment: beforeAssignmentField,
    afterExpiry: field(
      inner(quotaExpiry),
      "What it does when an assignment is over and no other came.",
    ),
    deny: field(inner(quotaDenial), "What a caller gets whose request is over the quota."),
  },
);

/** Reads `quotas` into the list; what is wrong is reported. */
export function readQuotas(reader: NodeReader, written: Field, list: QuotaList): void {
  const nodes = reader.readList(written, "a list of quotas: {name: ...}");
  for (const item of nodes ?? []) {
    const block = Block.at(reader, item, quota.shape);
    const draft = block && readQuota(block, list);
    if (draft === undefined || list.add(draft)) continue;
    const message = `a policy cannot hold more than ${quotasMax} quotas`;
    reader.report(item, { id: "HG160", message });
    return;
  }
}

/** Undefined where what it is about is not known: its name, its domain or its buckets. */
function readQuota(block: Block, list: QuotaList): QuotaDraft | undefined {
  const { reader, fields } = block;
  const { name, domain, bucket, rate, services, ...read } = quota.read(block);
  refuseEmptyServices(block);
  const isRated = !block.isLeftOut("rate");
  if (name === undefined) return undefined;
  list.takeName(name.value, name.node, reader);
  if (domain === undefined || bucket === undefined) return undefined;
  if (rate !== undefined) list.names.define(domain.value, name.value);
  return {
    quota: {
      name: name.value,
      domain: domain.value,
      services: services?.map(({ value }) => value),
      match: read.match.flatMap(({ match }) => match ?? []),
      when: read.when,
      classes: read.classes,
      // Calls that reach a quota's own rate are rare, and would cost Envoys a part of it.
      callsShareRatio: read.callsShareRatio ?? (isRated ? 0 : callsShareDefault),
      ttlSeconds: read.ttlSeconds,
      beforeAssignment: read.beforeAssignment,
      deny: read.deny ?? quotaDenial.defaults,
      bucket,
    },
    reader,
    rate,
    isRated,
    expiry: read.afterExpiry ?? quotaExpiry.defaults,
    nodes: {
      domain: domain.node,
      services: services?.map(({ node }) => node) ?? [],
      bucket: block.field("bucket")?.key ?? fields.node,
      rate: block.field("rate")?.key ?? fields.node,
    },
  };
}

function refuseEmptyServices(block: Block): void {
  const written = block.field("services");
  const content = written && block.reader.contentOf(written);
  if (!isSeq(content) || content.items.length > 0) return;
  const message = '"services" names none';
  block.report("services", { id: "HG125", message, expected: servicesExpected });
}
