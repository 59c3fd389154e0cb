import { type ConditionCompiler, conditionCharsMax } from "../cel/cel.js";
import { servicesMax } from "../services/service-list.js";
import { Block } from "../text/block.js";
import type { Field, NodeReader } from "../text/node-reader.js";
import { readLabel, readQuotaName } from "../text/service-texts.js";
import { domainRule, type TextRule } from "../text/text-rules.js";
import { type QuotaDraft, type QuotaList, quotasMax } from "./quota-list.js";
import { readQuotaBucketParts, readQuotaClasses, readQuotaMatch } from "./quota-parts.js";
import {
  callsShareBounds,
  defaultQuota,
  readAfterExpiry,
  readBeforeAssignment,
  readQuotaDenial,
  readQuotaRate,
  readQuotaTtl,
} from "./quota-settings.js";
import { quotaShape } from "./quota-shapes.js";

/** Reads `quotas` into the list; what is wrong is reported. */
export function readQuotas(
  reader: NodeReader,
  field: Field,
  { list, compiler }: { readonly list: QuotaList; readonly compiler: ConditionCompiler },
): void {
  const items = reader.readList(field, "a list of quotas: {name: ...}");
  for (const item of items ?? []) {
    const block = Block.at(reader, item, quotaShape);
    const draft = block && readQuota(block, list, compiler);
    if (draft === undefined || list.add(draft)) continue;
    const message = `a policy cannot hold more than ${quotasMax} quotas`;
    reader.report(item, { id: "HG160", message });
    return;
  }
}

/** Undefined where what it is about is not known: its name, its domain or its buckets. */
function readQuota(
  block: Block,
  list: QuotaList,
  compiler: ConditionCompiler,
): QuotaDraft | undefined {
  const { reader, fields } = block;
  const nameField = reader.requiredField(fields, "name", "the quota's name");
  const name = nameField && readQuotaName(reader, nameField);
  const domainField = reader.requiredField(fields, "domain", "a domain of rateLimits");
  const domain = domainField && reader.readText(domainField, domainRule);
  const services = readServiceNames(block);
  const read = {
    match: readQuotaMatch(block),
    when: readWhen(block, compiler),
    classes: readQuotaClasses(block),
    // Calls that reach a quota's own rate are rare, and would cost Envoys a part of it.
    callsShareRatio: block.number(
      "callsShare",
      block.isLeftOut("rate") ? defaultQuota.callsShareRatio : 0,
      callsShareBounds,
    ),
    ttlSeconds: readQuotaTtl(block),
    beforeAssignment: readBeforeAssignment(block),
    deny: readQuotaDenial(block),
  };
  const bucket = readQuotaBucketParts(block);
  const rate = readQuotaRate(block);
  const expiry = readAfterExpiry(block);
  if (nameField === undefined || name === undefined) return undefined;
  list.takeName(name, nameField.value ?? nameField.key, reader);
  if (domainField === undefined || domain === undefined || bucket === undefined) return undefined;
  if (rate !== undefined) list.names.define(domain, name);
  return {
    quota: { name, domain, services: services?.map((one) => one.name), ...read, bucket },
    reader,
    rate,
    isRated: !block.isLeftOut("rate"),
    expiry,
    nodes: {
      domain: domainField.value ?? domainField.key,
      services: services?.map(({ node }) => node) ?? [],
      bucket: block.field("bucket")?.key ?? fields.node,
      rate: block.field("rate")?.key ?? fields.node,
    },
  };
}

/** Undefined where the quota is of every service. */
function readServiceNames(
  block: Block,
): readonly { readonly name: string; readonly node: Field["key"] }[] | undefined {
  const field = block.field("services");
  if (field === undefined) return undefined;
  const expected = "a list of services' names; left out: all";
  const items = block.items("services", expected, servicesMax);
  const isEmpty = items.length === 0 && block.reader.readList(field, expected)?.length === 0;
  if (isEmpty)
    block.report("services", { id: "HG125", message: '"services" names none', expected });
  return items.flatMap((item) => {
    const name = readLabel(block.reader, item);
    return name === undefined ? [] : [{ name, node: item.key }];
  });
}

/** A condition may be written over several lines; how long it is, its reader says. */
const conditionRule: TextRule = {
  charsMax: 16 * conditionCharsMax,
  forbidden: /(?![\n\t])[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u,
  expected: `a condition in CEL of at most ${conditionCharsMax} characters`,
};

function readWhen(block: Block, compiler: ConditionCompiler): string | undefined {
  const field = block.field("when");
  const when = field && block.reader.readText(field, conditionRule);
  if (field === undefined || when === undefined) return undefined;
  const compiled = compiler.expression(when);
  if (compiled.kind === "expression") return when;
  const { start, end, ...finding } = compiled.mistake;
  return block.reader.reportPart(field.value ?? field.key, { start, end }, finding);
}
