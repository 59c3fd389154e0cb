import type { LayersFigures } from "../../src/demo/three-layers/layers-counts.js";
import type { Layers } from "../../src/demo/three-layers/layers-settings.js";
import {
  type LayersCondition,
  layersCombinations,
  layersConditions,
  nameOf,
} from "./layers-conditions.js";

/** What came of a combination of layers under a condition. */
export interface LayersResult {
  readonly layers: Layers;
  readonly condition: LayersCondition;
  readonly figures: LayersFigures;
}

const measures: readonly {
  readonly title: string;
  readonly cell: (figures: LayersFigures) => string;
}[] = [
  { title: "Goodput", cell: ({ goodputRatio }) => percent(goodputRatio) },
  { title: "Critical requests served", cell: ({ criticalRatio }) => percent(criticalRatio) },
  {
    title: "Attempts per request",
    cell: ({ attemptsPerRequest }) => attemptsPerRequest.toFixed(2),
  },
  { title: "Wasted work", cell: ({ wastedRatio }) => percent(wastedRatio) },
];

/** A table for each measure: a row for each combination, a column for each condition. */
export function layersTables(results: readonly LayersResult[]): string {
  return measures
    .map(({ title, cell }) => {
      const head = [title, ...layersConditions.map(({ name }) => name)];
      const rows = layersCombinations.map((layers) => [
        nameOf(layers),
        ...layersConditions.map((condition) => {
          const figures = figuresFor(results, layers, condition);
          return figures === undefined ? "" : cell(figures);
        }),
      ]);
      const rule = ["---", ...layersConditions.map(() => "---:")];
      return [head, rule, ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
    })
    .join("\n\n");
}

function figuresFor(
  results: readonly LayersResult[],
  layers: Layers,
  condition: LayersCondition,
): LayersFigures | undefined {
  const isWanted = (one: LayersResult): boolean =>
    one.condition === condition && nameOf(one.layers) === nameOf(layers);
  return results.find(isWanted)?.figures;
}

/** More than all is what was left over from before. */
function percent(ratio: number): string {
  return `${(100 * Math.min(1, ratio)).toFixed(1)} %`;
}

const [labelWidth, cellWidth, rowHeight, headHeight] = [140, 152, 44, 84];
const barWidth = 90;

const bars: readonly {
  readonly name: string;
  readonly color: string;
  readonly ratioOf: (figures: LayersFigures) => number;
}[] = [
  { name: "goodput", color: "#2a7f3f", ratioOf: ({ goodputRatio }) => goodputRatio },
  { name: "critical served", color: "#1f5fa8", ratioOf: ({ criticalRatio }) => criticalRatio },
  { name: "wasted work", color: "#b3261e", ratioOf: ({ wastedRatio }) => wastedRatio },
];

/** The same as a picture: bars from 0 to 100 %, goodput as a number beside them. */
export function layersPicture(results: readonly LayersResult[]): string {
  const width = labelWidth + layersConditions.length * cellWidth + 10;
  const height = headHeight + layersCombinations.length * rowHeight + 10;
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img"`,
    ` font-family="sans-serif" font-size="12">\n`,
    "<title>Goodput, critical requests served and wasted work by the layers that are on</title>\n",
    `<rect width="${width}" height="${height}" fill="white"/>\n`,
  ];
  bars.forEach(({ name, color }, i) => {
    const x = labelWidth + i * cellWidth;
    parts.push(
      `<rect x="${x}" y="16" width="14" height="10" fill="${color}"/>`,
      `<text x="${x + 20}" y="26">${name}</text>\n`,
    );
  });
  layersConditions.forEach(({ name }, column) => {
    const x = labelWidth + column * cellWidth;
    parts.push(`<text x="${x}" y="66" font-weight="bold">${name}</text>\n`);
  });
  layersCombinations.forEach((layers, row) => {
    const y = headHeight + row * rowHeight;
    parts.push(`<text x="10" y="${y + 20}" font-weight="bold">${nameOf(layers)}</text>\n`);
    layersConditions.forEach((condition, column) => {
      const figures = figuresFor(results, layers, condition);
      if (figures !== undefined) parts.push(cell(figures, labelWidth + column * cellWidth, y));
    });
  });
  return `${parts.join("")}</svg>\n`;
}

function cell(figures: LayersFigures, x: number, y: number): string {
  const drawn = bars.map(({ color, ratioOf }, i) => {
    const at = `x="${x}" y="${y + 4 + i * 9}" height="7"`;
    const length = (barWidth * Math.min(1, ratioOf(figures))).toFixed(1);
    const whole = `<rect ${at} width="${barWidth}" fill="#eee"/>`;
    return `${whole}<rect ${at} width="${length}" fill="${color}"/>`;
  });
  const goodput = percent(figures.goodputRatio);
  return `${drawn.join("")}<text x="${x + barWidth + 6}" y="${y + 12}">${goodput}</text>\n`;
}
