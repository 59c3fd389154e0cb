import { Block } from "./block.js";
import type { Field, NodeReader } from "./node-reader.js";
import { permitsAlone, readAdmission } from "./service-admission.js";
import { readConcurrency, usualConcurrency } from "./service-concurrency.js";
import type { ServiceList } from "./service-list.js";
import { servicesMax } from "./service-list.js";
import type { ServicePolicy } from "./service-policy.js";
import { readPriority } from "./service-priority.js";
import { type ReadRateLimit, readServiceRateLimit } from "./service-rate-limit.js";
import { serviceShape, upstreamShape } from "./service-shapes.js";
import { readAddress, readHost, readLabel } from "./service-texts.js";

/** Hosts of one service. */
export const hostsMax = 64;

/** Reads `services` into the list; what is wrong is reported. */
export function readServices(reader: NodeReader, field: Field, list: ServiceList): void {
  const items = reader.readList(field, "a list of services: {name: ...}");
  for (const item of items ?? []) {
    const block = Block.at(reader, item, serviceShape);
    const service = block && readService(block, list);
    if (service === undefined || list.add(service)) continue;
    const message = `a policy cannot hold more than ${servicesMax} services`;
    reader.report(item, { id: "HG160", message });
    return;
  }
}

/** A name is a whole service; undefined without one. */
function readService(block: Block, list: ServiceList): ServicePolicy | undefined {
  const name = readName(block, list);
  const namespaceField = block.field("namespace");
  const namespace = namespaceField && readLabel(block.reader, namespaceField);
  const read = readServiceRateLimit(block);
  if (read !== undefined) list.claim(read.claim);
  const { concurrency, isLimited, hasSignal } = readConcurrency(block);
  // One that is protected and names neither a number nor a law has a law that learns.
  const isLawLeftOut = block.isLeftOut("concurrency");
  const written = readAdmission(block, {
    isLimited: isLimited || isLawLeftOut,
    hasSignal,
    isRateLimitDry: read?.isDryRun === true,
  });
  // A law that nobody holds requests to would be a surprise.
  const isLawAlone = concurrency !== undefined && block.isLeftOut("admission");
  const admission = isLawAlone ? permitsAlone : written;
  const isLawNeeded = isLawLeftOut && admission !== undefined;
  if (read !== undefined) refuseIdleRateLimit(block, read);
  const service = {
    namespace,
    hosts: readHosts(block, list),
    upstream: readUpstream(block),
    rateLimit: read?.rateLimit,
    priority: readPriority(block, list.compiler),
    admission,
    concurrency:
      isLawNeeded && admission.maxInFlight === undefined ? usualConcurrency : concurrency,
  };
  return name === undefined ? undefined : { name, ...service };
}

function readName(block: Block, list: ServiceList): string | undefined {
  const { reader, fields } = block;
  const field = reader.requiredField(fields, "name", "the service's name");
  const name = field && readLabel(reader, field);
  if (field === undefined || name === undefined) return undefined;
  list.takeName(name, field.value ?? field.key, reader);
  return name;
}

function readHosts(block: Block, list: ServiceList): readonly string[] {
  return block.items("hosts", "a list of hosts", hostsMax).flatMap((item) => {
    const host = readHost(block.reader, item);
    if (host === undefined) return [];
    list.takeHost(host, item.key, block.reader);
    return [host];
  });
}

function readUpstream(service: Block): ServicePolicy["upstream"] {
  const block = service.block("upstream", upstreamShape);
  if (block === undefined) return undefined;
  const { reader, fields } = block;
  const addressField = reader.requiredField(fields, "address", "a host name or IP address");
  const address = addressField && readAddress(reader, addressField);
  const portField = reader.requiredField(fields, "port", "a port, 1 to 65535");
  const port = portField && reader.readWhole(portField, { min: 1, max: 65_535 });
  return address === undefined || port === undefined ? undefined : { address, port };
}

/** Limits are only asked for, or only counted, where admission is. */
function refuseIdleRateLimit(block: Block, { rateLimit, isDryRun }: ReadRateLimit): void {
  const refuse = (why: string, expected: string): undefined =>
    block.report("rateLimit", { id: "HG207", message: `"rateLimit" ${why}`, expected });
  if (rateLimit.inExtProc && block.isLeftOut("admission")) {
    refuse("is asked for in ext_proc, where there is no admission", "admission: {} beside it");
  }
  if (isDryRun && !rateLimit.inExtProc) {
    refuse("only counts, and is not asked for here", "inExtProc: true beside dryRun");
  }
}
