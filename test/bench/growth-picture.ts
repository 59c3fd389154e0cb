import type { GrowthDimension, ProofRow } from "./proof.js";

/** One picture of a curve. */
interface Panel {
  readonly by: GrowthDimension;
  readonly title: string;
  readonly unit: string;
}

const panels: readonly Panel[] = [
  { by: "keys", title: "a decision, by distinct keys", unit: "us" },
  { by: "rules", title: "a decision, by rules", unit: "us" },
  { by: "limits", title: "a decision, by limits", unit: "us" },
  { by: "Envoys", title: "a report of quotas, by Envoys", unit: "us" },
  { by: "services", title: "an Envoy and service, by services", unit: "us" },
];

const width = 300;
const height = 210;
const left = 44;
const right = 14;
const top = 40;
const bottom = 34;
const columnCount = 3;
const headHeight = 44;

/** Small pictures of what costs grow with; undefined without a curve. */
export function drawGrowth(rows: readonly ProofRow[]): string | undefined {
  const drawn = panels.flatMap((panel) => {
    const points = rows
      .filter(({ growth, value }) => growth?.by === panel.by && !Number.isNaN(value))
      .map(({ growth, value }) => [growth?.count ?? 0, value] as const)
      .sort(([one], [other]) => one - other);
    return points.length < 2 ? [] : [{ panel, points }];
  });
  if (drawn.length === 0) return undefined;
  const columns = Math.min(columnCount, drawn.length);
  const wide = columns * width;
  const high = headHeight + Math.ceil(drawn.length / columns) * height;
  const title = "CPU by what it may grow with";
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${wide} ${high}" role="img"`,
    ` font-family="sans-serif" font-size="12">\n<title>${title}</title>\n`,
    `<rect width="${wide}" height="${high}" fill="white"/>\n`,
    `<text x="16" y="26" font-size="15" font-weight="bold">${title}</text>\n`,
    ...drawn.map(({ panel, points }, i) => {
      const x = (i % columns) * width;
      const y = headHeight + Math.floor(i / columns) * height;
      return `<g transform="translate(${x} ${y})">${drawPanel(panel, points)}</g>\n`;
    }),
    "</svg>\n",
  ].join("");
}

type Points = readonly (readonly [count: number, value: number])[];

/**
 * Counts on a logarithmic axis. Values on a linear one from zero, so that a curve that looks flat
 * is flat; it ends at twice the first value at least, where cost in proportion would soon be.
 */
function drawPanel({ title, unit }: Panel, points: Points): string {
  const counts = points.map(([count]) => count);
  const [first = 1, last = 1] = [counts[0], counts.at(-1)].map((count) => Math.log(count ?? 1));
  const most = Math.max(2 * (points[0]?.[1] ?? 1), ...points.map(([, value]) => 1.15 * value));
  const xOf = (count: number): number =>
    left + ((Math.log(count) - first) / (last - first)) * (width - left - right);
  const yOf = (value: number): number => top + (1 - value / most) * (height - top - bottom);
  const [, base = 0] = points[0] ?? [];
  const path = points.map(([count, value]) => `${at(xOf(count))},${at(yOf(value))}`).join(" ");
  const text = ([x, y]: readonly [x: number, y: number], more: string, content: string): string =>
    `<text x="${at(x)}" y="${at(y)}" ${more}>${content}</text>`;
  const axis = [0, most / 2, most].flatMap((value) => [
    `<line x1="${left}" x2="${width - right}" y1="${at(yOf(value))}" y2="${at(yOf(value))}"`,
    ' stroke="#ddd"/>',
    text([left - 6, yOf(value) + 4], 'text-anchor="end" fill="#555"', tick(value)),
  ]);
  const marks = points.flatMap(([count, value], i) => [
    `<circle cx="${at(xOf(count))}" cy="${at(yOf(value))}" r="3.5" fill="#1f5fa8"/>`,
    text(
      [xOf(count), height - bottom + 17],
      `text-anchor="${anchor(i, points.length)}" fill="#555"`,
      short(count),
    ),
    text([xOf(count), yOf(value) - 9], `text-anchor="${anchor(i, points.length)}"`, tick(value)),
  ]);
  return [
    text([left, 16], 'font-weight="bold"', title),
    text([left, 31], 'fill="#555"', `${unit} of CPU; dashed: no growth`),
    ...axis,
    `<line x1="${left}" x2="${width - right}" y1="${at(yOf(base))}" y2="${at(yOf(base))}"`,
    ' stroke="#777" stroke-dasharray="5 4"/>',
    `<polyline points="${path}" fill="none" stroke="#1f5fa8" stroke-width="2"/>`,
    ...marks,
  ].join("");
}

/** Labels at the ends stay inside of the panel. */
function anchor(i: number, count: number): string {
  if (i === 0) return "start";
  return i === count - 1 ? "end" : "middle";
}

function short(count: number): string {
  if (count >= 1_000_000) return `${count / 1_000_000} M`;
  return count >= 1_000 ? `${count / 1_000} k` : String(count);
}

function tick(value: number): string {
  return String(Number(value.toPrecision(2)));
}

function at(value: number): string {
  return value.toFixed(1);
}
