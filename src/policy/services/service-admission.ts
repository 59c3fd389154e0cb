import { isMap, isSeq } from "yaml";
import type { AdmissionBlock } from "../../core/settings/admission-settings.js";
import type { ProxyPolicy } from "../proxies/proxy-policy.js";
import { Block } from "../text/block.js";
import type { Field } from "../text/node-reader.js";
import { permitBounds, positiveRatioBounds } from "../text/quantities.js";
import { readHeaderName } from "../text/service-texts.js";
import type { Shape } from "../text/shapes.js";
import {
  admissionBlocks,
  defaultDeadline,
  defaultReject,
  readDeadline,
  readEstimatedWait,
  readGate,
  readLoad,
  readQueue,
  readReject,
  readThrottle,
  waitBounds,
} from "./admission-blocks.js";
import {
  type AdmissionPolicy,
  type CallerKey,
  type KeyedPermits,
  type OwnOverloadMode,
  ownOverloadModes,
} from "./service-policy.js";
import {
  admissionShape,
  headerChoiceShape,
  admissionBlockShapes as shapes,
} from "./service-shapes.js";
import { readShedThresholds } from "./shed-thresholds.js";

/** The most keys that are counted at once. */
export const permitKeysMax = 1_000_000;

/** The bounds of `keysMax` where permits are counted. */
export const permitKeyBounds = { min: 1, max: permitKeysMax } as const;

/** What a concurrency law has where it stands alone: permits, and nothing else that refuses. */
export const permitsAlone: AdmissionPolicy = {
  maxInFlight: undefined,
  maxInFlightPer: undefined,
  shedAt: undefined,
  deadline: undefined,
  queue: undefined,
  estimatedWait: undefined,
  gate: undefined,
  throttle: undefined,
  load: undefined,
  reject: defaultReject,
  caller: { kind: "remoteAddress" },
  lateAfterMs: undefined,
  sampleRatio: 1,
  ownOverload: "allow",
  dryRun: new Set(),
};

/** `admission` as it is written: what is usual of `ownOverload` stands in `proxies`. */
export type AdmissionDraft = Omit<AdmissionPolicy, "ownOverload"> & {
  readonly ownOverload: OwnOverloadMode | undefined;
};

/** Completes it: an overloaded Headgate is answered for as one that does not answer. */
export function finishAdmission(
  draft: AdmissionDraft,
  { headgate: { deniesWithoutAnswer } }: ProxyPolicy,
): AdmissionPolicy {
  return { ...draft, ownOverload: draft.ownOverload ?? (deniesWithoutAnswer ? "refuse" : "allow") };
}

/** What stands beside `admission` and matters to it. */
export interface AdmissionSetting {
  /** Whether the service's law sets a limit that requests could wait for. */
  readonly isLimited: boolean;
  /** Whether the service's law follows a signal. */
  readonly hasSignal: boolean;
  /** Whether the service's rate limit only counts. */
  readonly isRateLimitDry: boolean;
}

/** Reads `admission` of a service; undefined where it is left out: then every request passes. */
export function readAdmission(
  service: Block,
  { isLimited, hasSignal, isRateLimitDry }: AdmissionSetting,
): AdmissionDraft | undefined {
  const block = service.block("admission", admissionShape);
  if (block === undefined) return undefined;
  const dryRun = readDryRun(block);
  if (isRateLimitDry) dryRun.add("rateLimit");
  const part = <T>(name: PartName, read: (part: Block) => T): T | undefined =>
    readPart(block, { name, dryRun, read });
  const shed = readShedThresholds(block);
  if (shed.isDryRun) dryRun.add("priority");
  const caller = readCaller(block);
  const admission: AdmissionDraft = {
    maxInFlight: block.whole("maxInFlight", undefined, permitBounds),
    maxInFlightPer: readKeyedPermits(block, caller),
    shedAt: shed.thresholds,
    deadline: block.isOff("deadline")
      ? undefined
      : (part("deadline", readDeadline) ?? defaultDeadline),
    queue: part("queue", readQueue),
    estimatedWait: part("estimatedWait", readEstimatedWait),
    gate: part("gate", readGate),
    throttle: part("throttle", readThrottle),
    load: part("load", readLoad),
    reject: readReject(block),
    caller,
    lateAfterMs: block.durationMs("lateAfter", undefined, waitBounds),
    sampleRatio: block.number("sampleRatio", 1, positiveRatioBounds),
    ownOverload: readOwnOverload(block),
    dryRun,
  };
  refuseIdleBlocks(block, admission, isLimited);
  if (admission.load?.signalReading !== undefined && !hasSignal) {
    const message = '"load" names a reading, and no law follows a signal';
    block.report("load", {
      id: "HG207",
      message,
      expected: "concurrency: {law: signal} beside it",
    });
  }
  return admission;
}

function readOwnOverload(block: Block): OwnOverloadMode | undefined {
  if (block.isLeftOut("ownOverload")) return undefined;
  return block.choice<OwnOverloadMode>("ownOverload", { usual: "allow", words: ownOverloadModes });
}

type PartName = Extract<AdmissionBlock, keyof typeof shapes>;

function readPart<T>(
  admission: Block,
  part: {
    readonly name: PartName;
    readonly dryRun: Set<AdmissionBlock>;
    readonly read: (part: Block) => T;
  },
): T | undefined {
  const { name, dryRun, read } = part;
  const shape: Shape = shapes[name];
  const block = admission.block(name, shape);
  if (block === undefined) return undefined;
  if (block.flag("dryRun")) dryRun.add(name);
  return read(block);
}

/** `true`: every block decides and counts, and refuses nobody; or a list of such blocks. */
function readDryRun(block: Block): Set<AdmissionBlock> {
  const field = block.field("dryRun");
  const isList = field !== undefined && isSeq(block.reader.contentOf(field));
  if (isList) return new Set(block.words("dryRun", [], admissionBlocks));
  return new Set(block.flag("dryRun") ? admissionBlocks : []);
}

/** `remoteAddress`, or `{header: x-user}`. */
function readCaller(block: Block): CallerKey {
  const field = block.field("caller");
  const usual = { kind: "remoteAddress" } as const;
  if (field === undefined) return usual;
  if (isMap(block.reader.contentOf(field))) return readHeaderKey(block, field) ?? usual;
  const expected = "remoteAddress, or {header: x-user}";
  block.choice("caller", { usual: usual.kind, words: [usual.kind], expected });
  return usual;
}

function readHeaderKey(block: Block, field: Field): CallerKey | undefined {
  const { reader } = block;
  const map = field.value && Block.at(reader, field.value, headerChoiceShape);
  const headerField = map && reader.requiredField(map.fields, "header", "a header's name");
  const header = headerField && readHeaderName(reader, headerField);
  return header === undefined ? undefined : { kind: "header", header };
}

/** `{per: caller, max: 20}`. */
function readKeyedPermits(admission: Block, caller: CallerKey): KeyedPermits | undefined {
  const block = admission.block("maxInFlightPer", shapes.maxInFlightPer);
  if (block === undefined) return undefined;
  const { reader, fields } = block;
  const maxField = reader.requiredField(fields, "max", "the most in flight of one");
  const max = maxField && reader.readWhole(maxField, permitBounds);
  const keysMax = block.whole("keysMax", 10_000, permitKeyBounds);
  const per = readPermitKey(block, caller);
  return max === undefined ? undefined : { per, max, keysMax };
}

function readPermitKey(block: Block, caller: CallerKey): KeyedPermits["per"] {
  const field = block.field("per");
  if (field !== undefined && isMap(block.reader.contentOf(field))) {
    return readHeaderKey(block, field) ?? caller;
  }
  const expected = "caller, route or {header: x-tenant}";
  const choice = { usual: "caller", words: ["caller", "route"], expected } as const;
  return block.choice("per", choice) === "route" ? { kind: "route" } : caller;
}

/** Blocks that would do nothing without another one. */
function refuseIdleBlocks(block: Block, admission: AdmissionDraft, isLimited: boolean): void {
  const hasLimit = isLimited || !block.isLeftOut("maxInFlight");
  const { queue, estimatedWait, gate, load, shedAt } = admission;
  const refuse = (name: string, why: string, expected: string): undefined =>
    block.report(name, { id: "HG207", message: `"${name}" ${why}`, expected });
  const limit = "maxInFlight beside it, or a concurrency law that sets a limit";
  if (queue !== undefined && !hasLimit) {
    refuse("queue", "has no limit that requests could wait for", limit);
  }
  if (estimatedWait !== undefined && !hasLimit) {
    refuse("estimatedWait", "has no limit to estimate a wait by", limit);
  }
  const isWaitRight = estimatedWait !== undefined || block.isLeftOut("estimatedWait");
  if (gate !== undefined && isWaitRight && estimatedWait?.sigmoid === undefined) {
    const sigmoid = "estimatedWait: {sigmoid: {midpoint: 28s, slope: 0.23}}";
    refuse("gate", "has no reject probability to go by", sigmoid);
  }
  if (load !== undefined && shedAt === undefined) {
    refuse("load", "has no thresholds to be held against", "shedAt that is not off");
  }
}
