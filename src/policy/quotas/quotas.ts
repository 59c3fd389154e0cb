import { isSeq } from "yaml";
import type { Block } from "../text/block.js";
import { readMaps } from "../text/defined-names.js";
import type { Field, NodeReader } from "../text/node-reader.js";
import { type QuotaDraft, type QuotaList, quotasMax } from "./quota-list.js";
import { callsShareDefault, quota, servicesExpected } from "./quota-policy.js";

/** Reads `quotas` into the list; problems are reported. */
export function readQuotas(reader: NodeReader, written: Field, list: QuotaList): void {
  readMaps(reader, written, {
    expected: "a list of quotas: {name: ...}",
    shape: quota.shape,
    most: `${quotasMax} quotas`,
    add: (block) => {
      const draft = readQuota(block, list);
      return draft === undefined || list.add(draft);
    },
  });
}

/** Reads one quota; undefined if its name, its domain or its bucket is wrong. */
function readQuota(block: Block, list: QuotaList): QuotaDraft | undefined {
  const { reader, fields } = block;
  const { name, domain, bucket, rate, services, afterExpiry, ...read } = quota.read(block);
  refuseEmptyServices(block);
  const isRated = !block.isLeftOut("rate");
  if (name === undefined) return undefined;
  list.named.define(name.value, name.node, reader);
  if (domain === undefined || bucket === undefined) return undefined;
  if (rate !== undefined) list.names.define(domain.value, name.value);
  return {
    quota: {
      ...read,
      name: name.value,
      domain: domain.value,
      services: services?.map(({ value }) => value),
      match: read.match.flatMap(({ match }) => match ?? []),
      bucket,
      // Calls that reach a quota's own rate are rare, and would cost Envoys a part of it.
      callsShareRatio: read.callsShareRatio ?? (isRated ? 0 : callsShareDefault),
    },
    reader,
    rate,
    isRated,
    expiry: afterExpiry,
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
  const message = '"services" is empty';
  block.report("services", { id: "HG125", message, expected: servicesExpected });
}
