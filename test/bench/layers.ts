import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  layersCombinations,
  layersConditions,
  nameOf,
  runCondition,
} from "../support/layers-conditions.js";
import { LayersDemo } from "../support/layers-demo.js";
import { type LayersResult, layersPicture, layersTables } from "../support/layers-table.js";
import { Stage } from "../support/stage.js";
import { layOut } from "./report.js";

/** Where the picture goes. */
const pictureFolder = "test-output";

/** What is aimed at with all three layers. */
const targets = { goodputRatio: 0.98, criticalRatio: 0.999, attempts: 1.1, wastedRatio: 0.01 };

/**
 * The example of three layers with a real Envoy, for each combination of layers under each
 * condition: tables, a picture, and what is aimed at.
 *
 * @param only combinations and conditions whose names, "client + proxy, 3x", hold this text
 */
export async function tellLayers(measureMs: number, only: string): Promise<string> {
  const results: LayersResult[] = [];
  for (const layers of layersCombinations) {
    for (const condition of layersConditions) {
      const name = `${nameOf(layers)}, ${condition.name}`;
      if (!name.includes(only)) continue;
      process.stderr.write(`${name} ...\n`);
      const stage = new Stage();
      await stage.open();
      try {
        const demo = await LayersDemo.start(stage, "--quiet-traffic");
        await demo.change({ layers });
        const figures = await runCondition(demo, { condition, measureMs });
        results.push({ layers, condition, figures });
      } finally {
        await stage.close();
      }
    }
  }
  await mkdir(pictureFolder, { recursive: true });
  await writeFile(join(pictureFolder, "three-layers.svg"), layersPicture(results));
  return [layersTables(results), tellTargets(results)].join("\n\n");
}

function tellTargets(results: readonly LayersResult[]): string {
  const all = results.filter(({ layers }) => layers.client && layers.proxy && layers.server);
  const { goodputRatio, criticalRatio, attempts, wastedRatio } = targets;
  const rows = all.map(({ condition, figures }) => [
    condition.name,
    isMet(figures.goodputRatio >= goodputRatio),
    isMet(figures.criticalRatio >= criticalRatio),
    isMet(figures.attemptsPerRequest <= attempts),
    isMet(figures.wastedRatio <= wastedRatio),
  ]);
  const heads = ["goodput 98 %", "critical 99.9 %", "attempts 1.1", "wasted 1 %"];
  return layOut([["all three", ...heads], ...rows]);
}

function isMet(isReached: boolean): string {
  return isReached ? "met" : "missed";
}
