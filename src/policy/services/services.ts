import type { Block } from "../text/block.js";
import { readMaps } from "../text/defined-names.js";
import type { Field, NodeReader } from "../text/node-reader.js";
import type { AdaptiveConcurrencyPolicy } from "../upstream/adaptive-concurrency.js";
import { circuitBreakers, refuseIdleAuto } from "../upstream/circuit-breakers.js";
import { outlierDetection } from "../upstream/outlier-detection.js";
import { refuseLongTries } from "../upstream/retries.js";
import {
  type AdmissionDraft,
  finishAdmission,
  permitsAlone,
  refuseIdleBlocks,
} from "./service-admission.js";
import type { ServiceConcurrency } from "./service-concurrency.js";
import { defaultConcurrency } from "./service-concurrency.js";
import { service } from "./service-form.js";
import { type ServiceDraft, type ServiceList, servicesMax } from "./service-list.js";
import type { ReadService, ServicePolicy } from "./service-policy.js";
import type { serviceRateLimit } from "./service-rate-limit.js";

/** Reads `services` into the list; problems are reported. */
export function readServices(reader: NodeReader, field: Field, list: ServiceList): void {
  readMaps(reader, field, {
    expected: "a list of services: {name: ...}",
    shape: service.shape,
    most: `${servicesMax} services`,
    add: (block) => list.add(readService(block, list)),
  });
}

/** Reads a service, which needs only a name. Parts that depend on `proxies` are finished later. */
function readService(block: Block, list: ServiceList): ServiceDraft {
  const read = service.read(block);
  const name = read.name?.value;
  claimNames(block, read, list);
  if (name !== undefined && read.usage !== undefined) {
    list.measure({ name, usage: read.usage.value, node: read.usage.node, reader: block.reader });
  }
  const guards = readGuards(block, read);
  const isHeld = guards.admission?.dryRun.has("permits") === false;
  if (read.usage !== undefined && isHeld && guards.concurrency === defaultConcurrency) {
    warnOfLearnedLimit(block);
  }
  const { admission: draft, concurrency: law } = guards;
  const isLimited = law !== undefined || draft?.maxInFlight !== undefined;
  const isWritten = !block.isLeftOut("admission") || !block.isLeftOut("concurrency");
  if (read.circuitBreakers && !isLimited && !isWritten) refuseIdleAuto(read.circuitBreakers);
  if (read.retries) refuseLongTries(read.retries, read.timeouts);
  refuseProbe(block, read);
  const { outlierDetection: ejection = outlierDetection.defaults, workloadLabels } = read;
  const own = {
    ...read,
    hosts: read.hosts.map(({ value }) => value),
    clusters: [...new Set(read.clusters.map(({ value }) => value))],
    ...guards,
    circuitBreakers: read.circuitBreakers?.data ?? circuitBreakers.defaults,
    outlierDetection: ejection === "off" ? undefined : ejection,
    upgrades: [...new Set(read.upgrades)],
    usage: read.usage?.value,
    retries: read.retries?.data,
  };
  const isWrong = !block.isLeftOut("adaptiveConcurrency") && !read.adaptiveConcurrency;
  return (proxies) => {
    const adaptive = finished(read.adaptiveConcurrency, proxies.adaptiveConcurrency);
    if (law !== undefined) refuseIdleFeedback(block, law, { adaptive, isWrong });
    if (name === undefined) return undefined;
    return {
      ...own,
      name,
      admission: draft && finishAdmission(draft, proxies),
      workloadLabels: workloadLabels ?? { app: name },
      adaptiveConcurrency: adaptive,
      admissionControl: finished(read.admissionControl, proxies.admissionControl),
    };
  };
}

/** Response times of measured calls reflect the length of answers, not the load of the service. */
function warnOfLearnedLimit(block: Block): void {
  block.reader.warn(block.field("admission")?.key ?? block.fields.node, {
    id: "HG257",
    message: "the limit is learned from response times, and long answers look like overload",
    expected: "maxInFlight: 100, or a law under `concurrency` that fits, such as signal",
  });
}

/** Returns a setting, or its default if it is left out or wrong. */
function finished<Data>(
  read: ((defaults: Data | undefined) => Data | "off") | undefined,
  defaults: Data | undefined,
): Data | undefined {
  const said = read === undefined ? defaults : read(defaults);
  return said === "off" ? undefined : said;
}

/** Claims a service's name, hosts and clusters; the domain of its limits is checked at the end. */
function claimNames(block: Block, read: ReadService, list: ServiceList): void {
  const { reader } = block;
  const { name, hosts, clusters, rateLimit } = read;
  if (name !== undefined) list.named.define(name.value, name.node, reader);
  for (const { value, node } of hosts) list.hosts.define(value, node, reader);
  for (const { value, node } of clusters) {
    list.claimCluster({ cluster: value, service: name?.value ?? "", node, reader });
  }
  if (rateLimit?.data === undefined) return;
  const {
    rateLimit: { domain, inExtProc },
    domainNode,
    descriptors,
  } = rateLimit.data;
  list.claim({ reader, domain, domainNode, inExtProc, descriptors });
}

/** Refuses a gRPC probe that Envoy cannot send: it needs HTTP/2 to all hosts. */
function refuseProbe(
  block: Block,
  { upstream: place, healthChecks: checks }: Pick<ReadService, "upstream" | "healthChecks">,
): void {
  if (place?.protocol !== "http1" || checks?.probe.kind !== "grpc") return;
  const message = '"healthChecks" uses gRPC, which needs HTTP/2, and the service speaks http1';
  block.report("healthChecks", { id: "HG207", message, expected: "protocol: http2, or http" });
}

/** Reads the settings by which Headgate itself decides. */
function readGuards(
  block: Block,
  read: ReadService,
): Pick<ServicePolicy, "rateLimit" | "concurrency"> & {
  readonly admission: AdmissionDraft | undefined;
} {
  // A protected service with neither a number nor an algorithm gets a learning algorithm.
  const isLawLeftOut = block.isLeftOut("concurrency");
  // A wrong algorithm is reported already; it may set a limit.
  const isWrong = !isLawLeftOut && read.concurrency === undefined;
  const { isLimited, hasSignal } = read.concurrency ?? { isLimited: isWrong, hasSignal: isWrong };
  const { concurrency: law } = read.concurrency ?? {};
  if (read.admission !== undefined) {
    refuseIdleBlocks(read.admission, {
      isLimited: isLimited || isLawLeftOut,
      hasSignal,
      isMeasured: !block.isLeftOut("usage"),
    });
  }
  const asked = read.rateLimit?.data;
  if (asked !== undefined) refuseIdleRateLimit(block, asked);
  const draft = read.admission?.data;
  const written = draft && asked?.isDryRun ? withRateLimitDry(draft) : draft;
  // An algorithm whose limit is not enforced would be a surprise.
  const isLawAlone = law !== undefined && block.isLeftOut("admission");
  const guard = isLawAlone ? { ...permitsAlone, ownOverload: undefined } : written;
  const isDefault = isLawLeftOut && guard !== undefined && guard.maxInFlight === undefined;
  return {
    rateLimit: asked?.rateLimit,
    admission: guard,
    concurrency: isDefault ? defaultConcurrency : law,
  };
}

function withRateLimitDry(draft: AdmissionDraft): AdmissionDraft {
  return { ...draft, dryRun: new Set([...draft.dryRun, "rateLimit"]) };
}

/** Driving `adaptiveConcurrency` needs that filter, and a baseline that driving cannot distort. */
function refuseIdleFeedback(
  block: Block,
  { feedback }: ServiceConcurrency,
  {
    adaptive,
    isWrong,
  }: { readonly adaptive: AdaptiveConcurrencyPolicy | undefined; readonly isWrong: boolean },
): void {
  if (!feedback.includes("adaptiveConcurrency") || isWrong) return;
  if (adaptive === undefined) {
    const message = '"concurrency" drives adaptiveConcurrency, which the service does not have';
    const expected = "adaptiveConcurrency: {minRtt: {fixed: 20ms}} next to it";
    block.report("concurrency", { id: "HG207", message, expected });
  } else if (adaptive.minRtt.kind === "sampled") {
    const isOwn = block.field("adaptiveConcurrency") !== undefined;
    block.report(isOwn ? "adaptiveConcurrency" : "concurrency", {
      id: "HG248",
      message: "Headgate drives adaptiveConcurrency, and it samples its minRtt",
      expected: "adaptiveConcurrency: {minRtt: {fixed: 20ms}}",
    });
  }
}

/** Refuses limits in ext_proc without admission, and a dry run without limits in ext_proc. */
function refuseIdleRateLimit(
  block: Block,
  { rateLimit, isDryRun }: NonNullable<typeof serviceRateLimit.defaults>,
): void {
  const refuse = (why: string, expected: string): undefined =>
    block.report("rateLimit", { id: "HG207", message: `"rateLimit" ${why}`, expected });
  if (rateLimit.inExtProc && block.isLeftOut("admission")) {
    refuse("uses ext_proc, and the service has no admission", "admission: {} next to it");
  }
  if (isDryRun && !rateLimit.inExtProc) {
    refuse("only affects inExtProc, which is off", "inExtProc: true beside dryRun");
  }
}
