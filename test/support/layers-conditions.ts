import type { LayersFigures } from "../../src/demo/three-layers/layers-counts.js";
import {
  type Layers,
  type LayersSettings,
  layerNames,
} from "../../src/demo/three-layers/layers-settings.js";

/** The example of three layers, in virtual time or as it runs. */
export interface LayersWorld {
  change(settings: Partial<LayersSettings>): Promise<void>;
  /** Lets time pass, and tells what came of it. */
  span(spanMs: number): Promise<LayersFigures>;
}

/** Trouble that the layers are for. */
export interface LayersCondition {
  readonly name: string;
  readonly loadRatio: number;
  /** What becomes of the workers, once laws have learned; undefined: nothing. */
  readonly workers?: {
    readonly ratio: number;
    /** Until all are back; undefined: they stay away. */
    readonly forMs?: number;
  };
}

/** All that is looked at. */
export const layersConditions: readonly LayersCondition[] = [
  { name: "1x", loadRatio: 1 },
  { name: "3x", loadRatio: 3 },
  { name: "10x", loadRatio: 10 },
  { name: "half die", loadRatio: 0.9, workers: { ratio: 0.5 } },
  { name: "retry storm", loadRatio: 0.9, workers: { ratio: 0, forMs: 3_000 } },
];

/** Laws may learn so long before trouble, and after it, in milliseconds. */
const learnMs = 5_000;

/** Every combination of layers, all of them first. */
export const layersCombinations: readonly Layers[] = [7, 6, 5, 3, 4, 2, 1, 0].map((mask) => {
  return { client: (mask & 4) > 0, proxy: (mask & 2) > 0, server: (mask & 1) > 0 };
});

/** Example: "client + server". */
export function nameOf(layers: Layers): string {
  const names = layerNames.filter((name) => layers[name]);
  return names.length === 0 ? "none" : names.length === 3 ? "all three" : names.join(" + ");
}

/** What becomes of requests under a condition, in the time after what laws need to follow. */
export async function runCondition(
  world: LayersWorld,
  { condition, measureMs }: { readonly condition: LayersCondition; readonly measureMs: number },
): Promise<LayersFigures> {
  const { loadRatio, workers } = condition;
  await world.change({ loadRatio, workersRatio: 1 });
  await world.span(learnMs);
  if (workers !== undefined) {
    await world.change({ workersRatio: workers.ratio });
    if (workers.forMs !== undefined) {
      await world.span(workers.forMs);
      await world.change({ workersRatio: 1 });
    }
    await world.span(learnMs);
  }
  return world.span(measureMs);
}
