import { readFileSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { initialSettings, type Layers } from "../../src/demo/three-layers/layers-settings.js";
import {
  layersCombinations,
  layersConditions,
  nameOf,
  runCondition,
} from "../support/layers-conditions.js";
import { type LayersResult, layersPicture, layersTables } from "../support/layers-table.js";
import { LayersRun } from "./layers-run.js";

const guide = "docs/guides/three-layers.md";
const picture = "docs/images/three-layers.svg";
const isUpdated = process.env["UPDATE_GOLDEN"] === "1";

/** Long enough for 1,500 requests at the least. */
const measureMs = 15_000;

const all: Layers = { client: true, proxy: true, server: true };

const known = new Map<string, Promise<LayersResult>>();

/** Runs once what several tests look at. */
function resultOf(name: string, layers: Layers, seed = 1): Promise<LayersResult> {
  const key = `${name}, ${nameOf(layers)}, ${seed}`;
  const result = known.get(key) ?? runOf(name, layers, seed);
  known.set(key, result);
  return result;
}

async function runOf(name: string, layers: Layers, seed: number): Promise<LayersResult> {
  const condition = layersConditions.find((one) => one.name === name);
  if (condition === undefined) throw new Error(`no condition ${name}`);
  const run = new LayersRun({ ...initialSettings, layers }, seed);
  return { layers, condition, figures: await runCondition(run, { condition, measureMs }) };
}

describe("three layers over virtual time", () => {
  describe("with all of them", () => {
    const cases = layersConditions.flatMap(({ name }) => [1, 2].map((seed) => ({ name, seed })));
    it.each(cases)("serve what can be served: $name, seed $seed", async ({ name, seed }) => {
      const { figures } = await resultOf(name, all, seed);
      expect(figures.goodputRatio).toBeGreaterThanOrEqual(0.98);
      expect(figures.criticalRatio).toBeGreaterThanOrEqual(0.999);
      expect(figures.attemptsPerRequest).toBeLessThanOrEqual(1.1);
      expect(figures.wastedRatio).toBeLessThanOrEqual(0.01);
    });

    it.each([1, 2])("do so while limits follow the loss of workers, seed %i", async (seed) => {
      const run = new LayersRun({ ...initialSettings, loadRatio: 0.9 }, seed);
      await run.span(5_000);
      await run.change({ workersRatio: 0.5 });
      const figures = await run.span(5_000);
      expect(figures.goodputRatio).toBeGreaterThanOrEqual(0.98);
      expect(figures.criticalRatio).toBeGreaterThanOrEqual(0.999);
      expect(figures.wastedRatio).toBeLessThanOrEqual(0.01);
    });

    it("are the same for the same seed", async () => {
      expect(await runOf("3x", all, 1)).toEqual(await resultOf("3x", all));
    });
  });

  it("have what the guide shows of each combination", async () => {
    const results: LayersResult[] = [];
    for (const layers of layersCombinations) {
      for (const { name } of layersConditions) results.push(await resultOf(name, layers));
    }
    const figuresOf = (name: string, layers: string): LayersResult["figures"] => {
      const found = results.find(
        (one) => one.condition.name === name && nameOf(one.layers) === layers,
      );
      if (found === undefined) throw new Error(`no result of ${layers} at ${name}`);
      return found.figures;
    };
    // What each layer adds; the numbers themselves stand in the guide.
    for (const name of ["3x", "10x", "retry storm"]) {
      expect(figuresOf(name, "none").goodputRatio, name).toBeLessThan(0.05);
      expect(figuresOf(name, "none").wastedRatio, name).toBeGreaterThan(0.95);
    }
    for (const name of ["3x", "10x"]) {
      expect(figuresOf(name, "proxy").criticalRatio, name).toBeGreaterThan(0.99);
      expect(figuresOf(name, "client + proxy").attemptsPerRequest).toBeLessThan(
        figuresOf(name, "proxy").attemptsPerRequest / 2,
      );
      expect(figuresOf(name, "server").wastedRatio).toBeLessThan(0.01);
    }
    const tables = layersTables(results);
    const text = readFileSync(guide, "utf8");
    const shown = text.replace(
      /(<!-- table: layers -->\n)[\s\S]*?(\n<!-- end of table -->)/,
      (_, begin: string, end: string) => `${begin}\n${tables}\n${end}`,
    );
    if (isUpdated) {
      writeFileSync(guide, shown);
      writeFileSync(picture, layersPicture(results));
    }
    expect(readFileSync(guide, "utf8")).toBe(shown);
    expect(readFileSync(picture, "utf8")).toBe(layersPicture(results));
  });
});
