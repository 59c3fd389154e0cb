/** One line of a panel. */
export interface PlotSeries {
  readonly name: string;
  /** A CSS colour. */
  readonly color: string;
  /** Dashed: a bound, and not a measurement. */
  readonly isBound?: boolean;
  readonly points: readonly (readonly [number, number])[];
}

/** One picture with axes. */
export interface PlotPanel {
  readonly title: string;
  readonly xLabel: string;
  readonly yLabel: string;
  readonly series: readonly PlotSeries[];
}

const panelWidth = 640;
const panelHeight = 250;
const left = 64;
const right = 150;
const top = 34;
const bottom = 44;
const plotWidth = panelWidth - left - right;
const plotHeight = panelHeight - top - bottom;

/** Panels one below the other, as an SVG that needs nothing else. */
export function plotSvg(title: string, panels: readonly PlotPanel[]): string {
  const height = 40 + panels.length * panelHeight;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${panelWidth}" height="${height}"`,
    ` viewBox="0 0 ${panelWidth} ${height}" font-family="sans-serif" font-size="12">`,
    `<rect width="100%" height="100%" fill="white"/>`,
    `<text x="16" y="26" font-size="16" font-weight="bold">${escapeText(title)}</text>`,
    ...panels.map((panel, i) => panelSvg(panel, 40 + i * panelHeight)),
    "</svg>\n",
  ].join("");
}

function panelSvg({ title, xLabel, yLabel, series }: PlotPanel, y: number): string {
  const all = series.flatMap(({ points }) => points);
  const xTop = niceTop(Math.max(1, ...all.map(([x]) => x)));
  const yTop = niceTop(Math.max(1, ...all.map(([, value]) => value)));
  const xOf = (x: number): number => left + (x / xTop.top) * plotWidth;
  const yOf = (value: number): number => top + plotHeight * (1 - value / yTop.top);
  const parts = [`<g transform="translate(0 ${y})">`];
  parts.push(`<text x="${left}" y="20" font-weight="bold">${escapeText(title)}</text>`);
  for (const value of ticks(yTop)) {
    const at = yOf(value).toFixed(1);
    parts.push(
      `<line x1="${left}" y1="${at}" x2="${left + plotWidth}" y2="${at}" stroke="#ddd"/>`,
      `<text x="${left - 6}" y="${at}" text-anchor="end" dy="4">${value}</text>`,
    );
  }
  for (const value of ticks(xTop)) {
    const at = xOf(value).toFixed(1);
    parts.push(`<text x="${at}" y="${top + plotHeight + 16}" text-anchor="middle">${value}</text>`);
  }
  parts.push(
    `<text x="${left + plotWidth / 2}" y="${panelHeight - 10}" text-anchor="middle">`,
    `${escapeText(xLabel)}</text>`,
    `<text transform="translate(14 ${top + plotHeight / 2}) rotate(-90)" text-anchor="middle">`,
    `${escapeText(yLabel)}</text>`,
  );
  series.forEach(({ name, color, isBound, points }, i) => {
    const path = points.map(([px, py]) => `${xOf(px).toFixed(1)},${yOf(py).toFixed(1)}`).join(" ");
    const dash = isBound === true ? ' stroke-dasharray="5 4"' : "";
    const legendY = top + 8 + i * 18;
    const legendX = left + plotWidth + 12;
    parts.push(
      `<polyline points="${path}" fill="none" stroke="${color}" stroke-width="2"${dash}/>`,
      `<line x1="${legendX}" y1="${legendY}" x2="${legendX + 18}" y2="${legendY}"`,
      ` stroke="${color}" stroke-width="3"${dash}/>`,
      `<text x="${legendX + 24}" y="${legendY}" dy="4">${escapeText(name)}</text>`,
    );
  });
  return `${parts.join("")}</g>`;
}

interface Axis {
  readonly top: number;
  readonly step: number;
}

/** The least whole step of 1, 2 or 5 times a power of ten that reaches `most` in 5 at most. */
function niceTop(most: number): Axis {
  const rough = most / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10) * power;
  return { top: Math.ceil(most / step) * step, step };
}

function ticks({ top: most, step }: Axis): readonly number[] {
  const count = Math.round(most / step);
  return Array.from({ length: count + 1 }, (_, i) => Number((i * step).toPrecision(6)));
}

function escapeText(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
