import { element, type Markup, type MarkupElement, place, tableOf } from "./markup.js";

/** One line of a plot: a value for each second, NaN if there is none. */
export interface SvgLine {
  readonly title: string;
  readonly values: readonly number[];
}

/** A marked moment in a plot. */
export interface SvgMark {
  readonly atMs: number;
  /** Empty for a line without a label. */
  readonly label: string;
}

/** Lines over the time of a run. */
export interface SvgPlot {
  readonly title: string;
  readonly note: string;
  readonly lines: readonly SvgLine[];
  readonly marks: readonly SvgMark[];
  /** First part of the time, which results leave out, in milliseconds. */
  readonly warmUpMs: number;
  readonly format: (value: number) => string;
}

/** Number of different line styles in the CSS. */
const plotLooks = 8;

const width = 560;
const height = 246;
const box = { left: 70, right: 538, top: 40, bottom: 216 } as const;

/** Baselines of the labels of marks, and the maximum width of one character. */
const markRows = [32, 16] as const;
const markCharWidth = 7;

/** Maximum numbers of points in a line and of rows in a table. */
const pointsMax = 600;
const rowsMax = 60;

/** Returns a plot as SVG, its legend, and a table of the same numbers. */
export function plotFigure(plot: SvgPlot): MarkupElement {
  const caption = [element("h3", {}, [plot.title]), element("p", {}, [plot.note])];
  return element("figure", {}, [
    element("figcaption", {}, caption),
    svg(plot),
    legend(plot),
    element("details", {}, [element("summary", {}, ["Table"]), table(plot)]),
  ]);
}

interface Scales {
  readonly secondsMax: number;
  readonly step: number;
  readonly x: (second: number) => number;
  readonly y: (value: number) => number;
  readonly top: number;
}

function scalesOf({ lines }: SvgPlot): Scales {
  const secondsMax = Math.max(1, ...lines.map(({ values }) => values.length));
  let most = 0;
  for (const { values } of lines) {
    for (const value of values) if (!Number.isNaN(value)) most = Math.max(most, value);
  }
  const step = niceStep(most / 4);
  const top = Math.max(step, Math.ceil(most / step - 1e-9) * step);
  return {
    secondsMax,
    step,
    top,
    x: (second) => box.left + ((box.right - box.left) * second) / secondsMax,
    y: (value) => box.bottom - ((box.bottom - box.top) * value) / top,
  };
}

/** Returns 1, 2 or 5 times a power of ten, at least as large as `least`. */
export function niceStep(least: number): number {
  if (least <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(least));
  const unit = least / power;
  return power * (unit <= 1 ? 1 : unit <= 2 ? 2 : unit <= 5 ? 5 : 10);
}

function svg(plot: SvgPlot): MarkupElement {
  const scales = scalesOf(plot);
  const label = `${plot.title}: ${plot.lines.map(({ title }) => title).join(", ")}`;
  const size = { viewBox: `0 0 ${width} ${height}` };
  return element("svg", { ...size, role: "img", "aria-label": label }, [
    ...warmUp(plot, scales),
    ...grid(plot, scales),
    ...marks(plot, scales),
    ...plot.lines.map(({ values }, i) => {
      return element("path", { class: lookOf(i), d: pathOf(values, scales) });
    }),
  ]);
}

function lookOf(lineIndex: number): string {
  return `line s${lineIndex % plotLooks}`;
}

function warmUp({ warmUpMs }: SvgPlot, { x }: Scales): readonly Markup[] {
  if (warmUpMs === 0) return [];
  const end = Math.min(box.right, x(warmUpMs / 1_000));
  const size = { width: end - box.left, height: box.bottom - box.top };
  return [element("rect", { class: "warm", x: box.left, y: box.top, ...size })];
}

function grid({ format }: SvgPlot, { step, top, x, y, secondsMax }: Scales): readonly Markup[] {
  const parts: Markup[] = [];
  for (let value = 0; value <= top + step / 2; value += step) {
    const at = y(value);
    const end = { class: "tick end", x: box.left - 8, y: at + 4 };
    parts.push(
      element("line", { class: "grid", x1: box.left, x2: box.right, y1: at, y2: at }),
      element("text", end, [format(value)]),
    );
  }
  const seconds = niceStep(secondsMax / 6);
  for (let second = 0; second <= secondsMax; second += seconds) {
    const under = { class: "tick mid", x: x(second), y: box.bottom + 20 };
    parts.push(element("text", under, [`${second} s`]));
  }
  return parts;
}

/** Draws a line for each mark, with its label in the first row that has room for it. */
function marks(plot: SvgPlot, { x }: Scales): readonly Markup[] {
  const ends = markRows.map(() => Number.NEGATIVE_INFINITY);
  return plot.marks.flatMap(({ atMs, label }) => {
    const at = x(atMs / 1_000);
    if (at > box.right) return [];
    const line = element("line", { class: "mark", x1: at, x2: at, y1: box.top, y2: box.bottom });
    const text = label.length > 40 ? `${label.slice(0, 39)}…` : label;
    const isRight = at > (box.left + box.right) / 2;
    const width = text.length * markCharWidth;
    const start = isRight ? at - width : at;
    const row = ends.findIndex((end) => end <= start);
    const y = markRows[row];
    if (y === undefined || text === "") return [line];
    ends[row] = start + width;
    const named = { class: `tick ${isRight ? "end" : "start"}`, x: at, y };
    return [line, element("text", named, [text])];
  });
}

/** Returns a path that starts again after each gap. */
function pathOf(values: readonly number[], { x, y }: Scales): string {
  const perPoint = Math.max(1, Math.ceil(values.length / pointsMax));
  let path = "";
  let isDrawing = false;
  for (const [i, value] of binned(values, perPoint).entries()) {
    if (Number.isNaN(value)) {
      isDrawing = false;
      continue;
    }
    path += `${isDrawing ? "L" : "M"}${place(x((i + 0.5) * perPoint))} ${place(y(value))}`;
    isDrawing = true;
  }
  return path;
}

/** Returns the mean of each bin of `perBin` values, without missing ones. */
function binned(values: readonly number[], perBin: number): readonly number[] {
  if (perBin === 1) return values;
  return Array.from({ length: Math.ceil(values.length / perBin) }, (_, i) => {
    const part = values.slice(i * perBin, (i + 1) * perBin).filter((one) => !Number.isNaN(one));
    return part.reduce((sum, value) => sum + value, 0) / part.length;
  });
}

function legend({ lines }: SvgPlot): MarkupElement {
  const items = lines.map(({ title }, i) => {
    const line = element("line", { class: lookOf(i), x1: 0, x2: 28, y1: 5, y2: 5 });
    const key = { class: "key", viewBox: "0 0 28 10", "aria-hidden": "true" };
    return element("li", {}, [element("svg", key, [line]), ` ${title}`]);
  });
  return element("ul", { class: "legend" }, items);
}

function table({ title, lines, format }: SvgPlot): MarkupElement {
  const length = Math.max(0, ...lines.map(({ values }) => values.length));
  const perRow = Math.max(1, Math.ceil(length / rowsMax));
  const columns = lines.map(({ values }) => binned(values, perRow));
  const rows = Array.from({ length: Math.ceil(length / perRow) }, (_, i) => {
    const end = Math.min(length, (i + 1) * perRow);
    const time = perRow === 1 ? `${end} s` : `${i * perRow + 1}–${end} s`;
    const cells = columns.map((values) => {
      const value = values[i] ?? Number.NaN;
      return Number.isNaN(value) ? "–" : format(value);
    });
    return [time, ...cells];
  });
  const titles = ["time", ...lines.map((line) => line.title)];
  return tableOf({ label: title, titles, rows });
}
