import { isMap } from "yaml";
import {
  defaultShedThresholds,
  earlyShedThresholds,
  type Priority,
  priorities,
  type ShedThreshold,
  type ShedThresholds,
  shedThreshold,
} from "../../core/admission/priority.js";
import type { Block } from "../text/block.js";
import { any, type FieldType, number, readBy } from "../text/form.js";
import { field, inner, innerBlock, object, wordOr } from "../text/object.js";
import { positiveRatioBounds, ratioBounds } from "../text/quantities.js";
import { dryRun } from "./admission-blocks.js";

const presets: Readonly<Record<"usual" | "eager" | "off", ShedThresholds | undefined>> = {
  usual: defaultShedThresholds,
  eager: earlyShedThresholds,
  off: undefined,
};

const edges = object(
  { title: "a threshold", docs: "A threshold with two edges." },
  {
    soft: field(number(ratioBounds), "The load from which some requests are refused.", {
      larger: "looser",
    }),
    hard: field(number(positiveRatioBounds), "The load from which all requests are refused.", {
      larger: "looser",
      needs: "the load from which all requests are refused",
    }),
  },
);

const hardEdge = number(positiveRatioBounds);
const bothEdges = innerBlock(edges);

/** `0.75`: the hard threshold, with a slightly lower soft one; or `{soft, hard}`. */
function threshold(priority: Priority): FieldType<ShedThreshold> {
  return readBy(any(hardEdge, bothEdges), (reader, place) => {
    if (!isMap(reader.contentOf(place))) {
      const hardRatio = hardEdge.read(reader, place);
      if (hardRatio === undefined) return undefined;
      const isSoftless = priority === "critical";
      return isSoftless ? { softRatio: hardRatio, hardRatio } : shedThreshold(hardRatio);
    }
    const read = bothEdges.read(reader, place);
    if (read === undefined) return undefined;
    const { hard: hardRatio = defaultShedThresholds[priority].hardRatio } = read.data;
    const { soft: softRatio = hardRatio } = read.data;
    if (softRatio > hardRatio) {
      const message = `the soft threshold ${softRatio} is above the hard threshold ${hardRatio}`;
      const expected = "a soft threshold at most the hard one";
      read.block.report("soft", { id: "HG204", message, expected });
    }
    return { softRatio, hardRatio };
  });
}

const thresholdField = <Class extends Priority>(priority: Class) =>
  field(threshold(priority), `The load from which requests of class ${priority} are refused.`, {
    larger: "looser",
    default: defaultShedThresholds[priority],
  });

const byClass = object(
  {
    title: "shedAt",
    docs:
      "The load from which each class is refused. Default: low 0.75, normal 0.9, " +
      "high 0.95. `eager` refuses low from 0.5.",
  },
  {
    low: thresholdField("low"),
    normal: thresholdField("normal"),
    high: thresholdField("high"),
    critical: thresholdField("critical"),
    dryRun,
  },
  {
    data: ({ dryRun: isDryRun, ...thresholds }) => ({ thresholds, isDryRun }),
    check: (block, { thresholds }) => refuseDisorder(block, thresholds),
  },
);

/** `shedAt`: a preset, or thresholds by class; a class that is left out has its default. */
export const shedAt = wordOr(
  ["usual", "eager", "off"],
  inner(byClass),
  "thresholds by class, such as {low: 0.75}, or usual, eager or off",
);

/** Returns the thresholds of `shedAt`; undefined if no class is refused before another one. */
export function shedThresholds(read: "usual" | "eager" | "off" | typeof byClass.defaults): {
  readonly thresholds: ShedThresholds | undefined;
  readonly isDryRun: boolean;
} {
  return typeof read === "string" ? { thresholds: presets[read], isDryRun: false } : read;
}

/** Reports a class that is refused later than the class above it, at the soft or hard threshold. */
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
