import { escapeHtml, htmlTable } from "../../simulate/report/svg-plot.js";

/** How values of one direction are drawn, and written. */
interface PlotAxis {
  readonly title: string;
  readonly scale: "linear" | "log";
  readonly format: (value: number) => string;
}

/** One line: its points from left to right. */
interface PlotLine {
  readonly title: string;
  readonly points: readonly (readonly [x: number, y: number])[];
}

/** Lines over an axis. */
export interface LinePlot {
  readonly title: string;
  readonly note: string;
  readonly x: PlotAxis;
  readonly y: PlotAxis;
  readonly lines: readonly PlotLine[];
  /** A point to look at, with a few words. */
  readonly mark: { readonly x: number; readonly y: number; readonly label: string } | undefined;
}

const width = 560;
const height = 250;
const box = { left: 66, right: 538, top: 24, bottom: 200 } as const;

/** Rows of a table that are shown, at most. */
const rowsMax = 60;

/** A plot as SVG, its legend, and a table of the same numbers. */
export function linePlotFigure(plot: LinePlot): string {
  return [
    "<figure>",
    `<figcaption><h3>${escapeHtml(plot.title)}</h3><p>${escapeHtml(plot.note)}</p></figcaption>`,
    drawing(plot),
    `<details><summary>Table</summary>${table(plot)}</details>`,
    "</figure>",
  ].join("\n");
}

/** Where values are drawn, and the values that are written beside the axis. */
interface Scale {
  readonly place: (value: number) => number;
  readonly ticks: readonly number[];
}

function scaleOf(
  { scale }: PlotAxis,
  values: readonly number[],
  [from, to]: readonly [number, number],
): Scale {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  if (scale === "log") {
    const low = Math.floor(Math.log10(Math.max(least, 1e-9)));
    const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(most, 1e-9))));
    const ticks = Array.from({ length: high - low + 1 }, (_, i) => 10 ** (low + i));
    const part = (value: number): number => (Math.log10(value) - low) / (high - low);
    return { ticks, place: (value) => from + (to - from) * part(value) };
  }
  const step = niceStep((most - Math.min(0, least)) / 4);
  const start = Math.floor(least / step) * step;
  const end = Math.max(start + step, Math.ceil(most / step - 1e-9) * step);
  const ticks = Array.from({ length: Math.round((end - start) / step) + 1 }, (_, i) => {
    return start + i * step;
  });
  return { ticks, place: (value) => from + ((to - from) * (value - start)) / (end - start) };
}

/** 1, 2 or 5 times a power of ten, at least as large. */
function niceStep(least: number): number {
  if (least <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(least));
  const unit = least / power;
  return power * (unit <= 1 ? 1 : unit <= 2 ? 2 : unit <= 5 ? 5 : 10);
}

function drawing(plot: LinePlot): string {
  const points = plot.lines.flatMap((line) => line.points);
  const marked = plot.mark === undefined ? [] : [plot.mark];
  const xs = [...points.map(([x]) => x), ...marked.map(({ x }) => x)];
  const ys = [...points.map(([, y]) => y), ...marked.map(({ y }) => y)];
  const x = scaleOf(plot.x, xs, [box.left, box.right]);
  const y = scaleOf(plot.y, plot.y.scale === "log" ? ys : [0, ...ys], [box.bottom, box.top]);
  const label = escapeHtml(`${plot.title}: ${plot.lines.map(({ title }) => title).join(", ")}`);
  const paths = plot.lines.map((line, i) => {
    const path = line.points.map(([px, py]) => `${round(x.place(px))} ${round(y.place(py))}`);
    return `<path class="line s${i}" d="M${path.join("L")}"/>`;
  });
  return [
    `<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${label}">`,
    ...grid(plot, x, y),
    ...paths,
    ...marked.map((mark) => markText(x.place(mark.x), y.place(mark.y), mark.label)),
    "</svg>",
  ].join("\n");
}

function grid(plot: LinePlot, x: Scale, y: Scale): readonly string[] {
  const text = (kind: string, at: readonly [number, number], words: string): string =>
    `<text class="tick ${kind}" x="${round(at[0])}" y="${round(at[1])}">` +
    `${escapeHtml(words)}</text>`;
  const shown = x.ticks.filter((_, i) => i % Math.ceil(x.ticks.length / 8) === 0);
  return [
    ...y.ticks.flatMap((value) => {
      const at = round(y.place(value));
      return [
        `<line class="grid" x1="${box.left}" x2="${box.right}" y1="${at}" y2="${at}"/>`,
        text("end", [box.left - 8, y.place(value) + 4], plot.y.format(value)),
      ];
    }),
    ...shown.map((value) => text("mid", [x.place(value), box.bottom + 20], plot.x.format(value))),
    text("mid", [(box.left + box.right) / 2, box.bottom + 42], plot.x.title),
    text("start", [4, 14], plot.y.title),
  ];
}

function markText(x: number, y: number, label: string): string {
  const isRight = x > (box.left + box.right) / 2;
  const at = `x="${round(isRight ? x - 8 : x + 8)}" y="${round(Math.max(36, y - 8))}"`;
  return (
    `<circle class="s1" cx="${round(x)}" cy="${round(y)}" r="5" fill="none"/>` +
    `<text class="tick ${isRight ? "end" : "start"}" ${at}>${escapeHtml(label)}</text>`
  );
}

function table({ x, y, lines }: LinePlot): string {
  const [first] = lines;
  const every = Math.max(1, Math.ceil((first?.points.length ?? 0) / rowsMax));
  const rows = (first?.points ?? []).flatMap(([at], i) => {
    if (i % every !== 0) return [];
    return [[x.format(at), ...lines.map(({ points }) => y.format(points[i]?.[1] ?? 0))]];
  });
  return htmlTable([x.title, ...lines.map(({ title }) => title)], rows);
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}
