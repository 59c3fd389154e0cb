import {
  element,
  type Markup,
  type MarkupElement,
  place,
  tableOf,
} from "../../simulate/report/markup.js";
import { niceStep } from "../../simulate/report/svg-plot.js";

/** How values of one axis are drawn and labelled. */
interface PlotAxis {
  readonly title: string;
  readonly scale: "linear" | "log";
  /** Labelled values, if they are not round ones; the axis ends with the lines. */
  readonly ticks?: readonly number[];
  readonly format: (value: number) => string;
}

/** A line: its points from left to right. */
interface PlotLine {
  readonly title: string;
  readonly points: readonly (readonly [x: number, y: number])[];
}

/** Lines over common axes. */
export interface LinePlot {
  readonly title: string;
  readonly note: string;
  readonly x: PlotAxis;
  readonly y: PlotAxis;
  readonly lines: readonly PlotLine[];
  /** A highlighted point with a short label. */
  readonly mark: { readonly x: number; readonly y: number; readonly label: string } | undefined;
}

const width = 560;
const height = 260;
const box = { left: 66, right: 524, top: 38, bottom: 210 } as const;

/** Maximum number of rows in a table. */
const rowsMax = 60;

/** Returns a plot as SVG, and a table of the same numbers. */
export function linePlotFigure(plot: LinePlot): MarkupElement {
  const caption = [element("h3", {}, [plot.title]), element("p", {}, [plot.note])];
  return element("figure", {}, [
    element("figcaption", {}, caption),
    drawing(plot),
    element("details", {}, [element("summary", {}, ["Table"]), table(plot)]),
  ]);
}

/** Positions of values, and the labelled values of the axis. */
interface Scale {
  readonly place: (value: number) => number;
  readonly ticks: readonly number[];
}

function scaleOf(
  { scale, ticks: ownTicks }: PlotAxis,
  values: readonly number[],
  [from, to]: readonly [number, number],
): Scale {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  if (ownTicks !== undefined) {
    const part = (value: number): number => (value - least) / Math.max(most - least, 1e-9);
    return { ticks: ownTicks, place: (value) => from + (to - from) * part(value) };
  }
  if (scale === "log") {
    const low = Math.floor(Math.log10(Math.max(least, 1e-9)));
    const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(most, 1e-9))));
    const ticks = Array.from({ length: high - low + 1 }, (_, i) => 10 ** (low + i));
    const part = (value: number): number => (Math.log10(value) - low) / (high - low);
    return { ticks, place: (value) => from + (to - from) * part(value) };
  }
  const step = niceStep(most / 4);
  const end = Math.max(step, Math.ceil(most / step - 1e-9) * step);
  const ticks = Array.from({ length: Math.round(end / step) + 1 }, (_, i) => i * step);
  return { ticks, place: (value) => from + ((to - from) * value) / end };
}

function drawing(plot: LinePlot): MarkupElement {
  const points = plot.lines.flatMap((line) => line.points);
  const marked = plot.mark === undefined ? [] : [plot.mark];
  const xs = [...points.map(([x]) => x), ...marked.map(({ x }) => x)];
  const ys = [...points.map(([, y]) => y), ...marked.map(({ y }) => y)];
  const x = scaleOf(plot.x, xs, [box.left, box.right]);
  const y = scaleOf(plot.y, ys, [box.bottom, box.top]);
  const label = `${plot.title}: ${plot.lines.map(({ title }) => title).join(", ")}`;
  const size = { viewBox: `0 0 ${width} ${height}` };
  return element("svg", { ...size, role: "img", "aria-label": label }, [
    ...grid(plot, x, y),
    ...plot.lines.map((line, i) => {
      const path = line.points.map(([px, py]) => `${place(x.place(px))} ${place(y.place(py))}`);
      return element("path", { class: `line s${i}`, d: `M${path.join("L")}` });
    }),
    ...marked.flatMap((mark) => markText(x.place(mark.x), y.place(mark.y), mark.label)),
  ]);
}

function grid(plot: LinePlot, x: Scale, y: Scale): readonly Markup[] {
  const shown = x.ticks.filter((_, i) => i % Math.ceil(x.ticks.length / 8) === 0);
  const { left, right, bottom } = box;
  return [
    ...y.ticks.flatMap((value) => {
      const at = y.place(value);
      return [
        element("line", { class: "grid", x1: left, x2: right, y1: at, y2: at }),
        tick("end", [left - 8, at + 4], plot.y.format(value)),
      ];
    }),
    ...shown.map((value) => tick("mid", [x.place(value), bottom + 20], plot.x.format(value))),
    tick("mid", [(left + right) / 2, bottom + 42], plot.x.title),
    tick("start", [4, 14], plot.y.title),
  ];
}

function tick(kind: string, [x, y]: readonly [number, number], words: string): MarkupElement {
  return element("text", { class: `tick ${kind}`, x, y }, [words]);
}

function markText(x: number, y: number, label: string): readonly Markup[] {
  const isRight = x > (box.left + box.right) / 2;
  const at = [isRight ? x - 8 : x + 8, Math.max(box.top + 12, y - 8)] as const;
  return [
    element("circle", { class: "s1", cx: x, cy: y, r: 5, fill: "none" }),
    tick(isRight ? "end" : "start", at, label),
  ];
}

function table({ title, x, y, lines }: LinePlot): MarkupElement {
  const [first] = lines;
  const every = Math.max(1, Math.ceil((first?.points.length ?? 0) / rowsMax));
  const rows = (first?.points ?? []).flatMap(([at], i) => {
    if (i % every !== 0) return [];
    return [[x.format(at), ...lines.map(({ points }) => y.format(points[i]?.[1] ?? 0))]];
  });
  const titles = [x.title, ...lines.map((line) => line.title)];
  return tableOf({ label: title, titles, rows });
}
