import { isMap } from "yaml";
import {
  type Priority,
  priorities,
  type ShedThreshold,
  type ShedThresholds,
} from "../../core/settings/admission-settings.js";
import {
  defaultShedThresholds,
  earlyShedThresholds,
  shedThreshold,
} from "../../core/settings/priority.js";
import { Block } from "../text/block.js";
import type { Field } from "../text/node-reader.js";
import { positiveRatioBounds, ratioBounds, readNumber } from "../text/quantities.js";
import { admissionBlockShapes, thresholdShape } from "./service-shapes.js";

/** What `shedAt` says, and whether only to count. */
export interface ReadThresholds {
  /** Undefined: no class is refused before another one. */
  readonly thresholds: ShedThresholds | undefined;
  readonly isDryRun: boolean;
}

const presets: Readonly<Record<"usual" | "eager" | "off", ShedThresholds | undefined>> = {
  usual: defaultShedThresholds,
  eager: earlyShedThresholds,
  off: undefined,
};

/** Reads `shedAt`: a preset, or thresholds by class; a class that is left out has its usual one. */
export function readShedThresholds(admission: Block): ReadThresholds {
  const usual = { thresholds: defaultShedThresholds, isDryRun: false };
  const field = admission.field("shedAt");
  if (field === undefined) return usual;
  const { reader } = admission;
  if (field.value !== undefined && !isMap(reader.contentOf(field))) {
    const words = ["usual", "eager", "off"] as const;
    const expected = "thresholds by class, such as {low: 0.75}, or usual, eager or off";
    const word = admission.choice("shedAt", { usual: "usual", words, expected });
    return { thresholds: presets[word], isDryRun: false };
  }
  const block = admission.block("shedAt", admissionBlockShapes.shedAt);
  if (block === undefined) return usual;
  const thresholds = {
    critical: readThreshold(block, "critical"),
    high: readThreshold(block, "high"),
    normal: readThreshold(block, "normal"),
    low: readThreshold(block, "low"),
  };
  refuseDisorder(block, thresholds);
  return { thresholds, isDryRun: block.flag("dryRun") };
}

/** `0.75`: hard there, and soft a little below; or `{soft, hard}`. */
function readThreshold(block: Block, priority: Priority): ShedThreshold {
  const usual = defaultShedThresholds[priority];
  const field = block.field(priority);
  if (field === undefined) return usual;
  if (isMap(block.reader.contentOf(field))) return readEdges(block, field, usual);
  const hardRatio = readNumber(block.reader, field, positiveRatioBounds);
  if (hardRatio === undefined) return usual;
  return priority === "critical" ? { softRatio: hardRatio, hardRatio } : shedThreshold(hardRatio);
}

function readEdges(block: Block, field: Field, usual: ShedThreshold): ShedThreshold {
  const edges = field.value && Block.at(block.reader, field.value, thresholdShape);
  if (edges === undefined) return usual;
  edges.reader.requiredField(edges.fields, "hard", "the load from which all are refused");
  const hardRatio = edges.number("hard", usual.hardRatio, positiveRatioBounds);
  const softRatio = edges.number("soft", hardRatio, ratioBounds);
  if (softRatio > hardRatio) {
    const message = `a soft threshold of ${softRatio} is above the hard one, ${hardRatio}`;
    edges.report("soft", { id: "HG204", message, expected: "a soft one that is at most the hard" });
  }
  return { softRatio, hardRatio };
}

/** A class is refused no later than the one above it, at its soft and at its hard edge. */
function refuseDisorder(block: Block, thresholds: ShedThresholds): void {
  priorities.slice(1).forEach((priority, i) => {
    const above = priorities[i] ?? "critical";
    const own = thresholds[priority];
    const other = thresholds[above];
    const isOrdered = own.softRatio <= other.softRatio && own.hardRatio <= other.hardRatio;
    if (isOrdered) return;
    block.report(block.field(priority) === undefined ? above : priority, {
      id: "HG204",
      message: `"${priority}" would be refused later than "${above}"`,
      expected: "thresholds that fall from critical to high, normal and low",
    });
  });
}
