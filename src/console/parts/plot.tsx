import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { formatClock, formatTime } from "../data/format.js";
import { formatTicks, timeRange, timeSteps } from "../data/time-axis.js";
import { browserDate } from "../state/browser.js";
import { useElement } from "../state/element.js";
import { themeChanges } from "../state/theme.js";
import { DataTable, type TableColumn } from "./data-table.jsx";
import { saveCsv } from "./save-csv.js";

/** A line of a plot. Its color is one of six; its dashes tell it apart without colors. */
export interface PlotLine {
  readonly label: string;
  readonly ink: 1 | 2 | 3 | 4 | 5 | 6;
  readonly dash?: readonly number[];
  readonly isFilled?: boolean;
  /** One for each second; undefined: not known. */
  readonly values: readonly (number | undefined)[];
}

/** A time that is shaded: the store was away, or a replica was not heard. */
export interface PlotBand {
  readonly from: number;
  readonly to: number;
  readonly kind: "outage" | "missing";
}

/** Something that happened: a policy was changed, an override given. */
export interface PlotMark {
  readonly at: number;
  readonly label: string;
}

/** A plot over time, live, with a table of the same numbers. */
export interface PlotProps {
  readonly title: string;
  /** Seconds since 1970, growing. */
  readonly seconds: readonly number[];
  readonly lines: readonly PlotLine[];
  readonly format: (value: number) => string;
  readonly bands?: readonly PlotBand[];
  readonly marks?: readonly PlotMark[];
  /** Between 0 and this at least. */
  readonly max?: number;
}

const plotHeight = 190;

/** Draws a plot; its legend tells the values at the cursor, or the last ones. */
export function Plot(props: PlotProps) {
  const { title, seconds, lines, format, bands = [], marks = [] } = props;
  const asTable = useSignal(false);
  const cursor = useSignal<number | undefined>(undefined);
  const at = cursor.value ?? seconds.length - 1;
  const second = seconds[at];
  return (
    <section class="panel plot" aria-label={title}>
      <header>
        <h2>{title}</h2>
        <div class="tools">
          <button
            type="button"
            aria-pressed={asTable.value}
            onClick={() => {
              asTable.value = !asTable.value;
            }}
          >
            Table
          </button>
          <button type="button" onClick={() => savePlot(props)}>
            CSV
          </button>
        </div>
      </header>
      {asTable.value ? (
        <PlotTable {...props} />
      ) : seconds.length === 0 ? (
        <p class="empty plot-empty">No data yet.</p>
      ) : (
        <Canvas {...props} bands={bands} marks={marks} onCursor={(i) => (cursor.value = i)} />
      )}
      <ul class="legend">
        {lines.map(({ label, ink, dash, values }) => (
          <li key={label}>
            <Swatch ink={ink} dash={dash} />
            {label} <b>{textOf(values[at], format)}</b>
          </li>
        ))}
        {cursor.value !== undefined && second !== undefined ? (
          <li class="muted">{formatClock(second * 1_000)} UTC</li>
        ) : undefined}
        {bands.length > 0 ? <BandLegend bands={bands} /> : undefined}
        {marks.length > 0 ? <li class="muted">▲ {marksText(marks, second, cursor.value)}</li> : ""}
      </ul>
    </section>
  );
}

function marksText(
  marks: readonly PlotMark[],
  second: number | undefined,
  cursor: number | undefined,
): string {
  const near = marks.filter(({ at }) => Math.abs(at - (second ?? 0)) <= 8);
  if (cursor === undefined || near.length === 0) return "changes by operators";
  return near.map(({ label }) => label).join("; ");
}

function BandLegend({ bands }: { readonly bands: readonly PlotBand[] }) {
  const kinds = [...new Set(bands.map(({ kind }) => kind))];
  return kinds.map((kind) => (
    <li key={kind} class="muted">
      <span class={`band-swatch ${kind}`} />
      {kind === "outage" ? "store away" : "replica not answering"}
    </li>
  ));
}

function Swatch({
  ink,
  dash,
}: {
  readonly ink: number;
  readonly dash?: readonly number[] | undefined;
}) {
  return (
    <svg class={`swatch ink-${ink}`} width="22" height="8" aria-hidden="true">
      <line x1="0" x2="22" y1="4" y2="4" stroke-dasharray={dash?.join(" ")} />
    </svg>
  );
}

function textOf(value: number | undefined, format: (value: number) => string): string {
  return value === undefined ? "?" : format(value);
}

interface CanvasProps extends PlotProps {
  readonly bands: readonly PlotBand[];
  readonly marks: readonly PlotMark[];
  readonly onCursor: (index: number | undefined) => void;
}

/** The plot library keeps its own picture; new data is handed over, new lines begin it anew. */
function Canvas(props: CanvasProps) {
  const place = useElement<HTMLDivElement>();
  const plot = useRef<uPlot | undefined>(undefined);
  const latest = useRef(props);
  latest.current = props;
  const { title, lines } = props;
  const form = lines.map(({ label }) => label).join("\n");
  const theme = themeChanges.value;
  useEffect(() => {
    const { current: element } = place;
    if (!element) return undefined;
    const made = makePlot(element, latest);
    plot.current = made;
    const observer = new ResizeObserver(() => {
      made.setSize({ width: element.clientWidth, height: plotHeight });
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
    };
  }, [form, theme]);
  useEffect(() => plot.current?.setData(dataOf(props)));
  const label = `${title}: ${lines
    .map((line) => `${line.label} ${textOf(line.values.at(-1), props.format)}`)
    .join(", ")}`;
  return <div class="canvas" ref={place} role="img" aria-label={label} />;
}

/** The library has null for what is not known. */
function dataOf({ seconds, lines }: PlotProps): uPlot.AlignedData {
  return [[...seconds], ...lines.map(({ values }) => values.map((value) => value ?? null))];
}

function makePlot(element: HTMLElement, latest: { readonly current: CanvasProps }): uPlot {
  const { lines, max = 0 } = latest.current;
  const swatches = [...(element.parentElement?.querySelectorAll(".swatch") ?? [])];
  const colors = swatches.map((swatch) => getComputedStyle(swatch).color);
  const { color: text } = getComputedStyle(element);
  const grid = getComputedStyle(element).getPropertyValue("border-top-color");
  const axis = { stroke: text, grid: { stroke: grid, width: 1 }, ticks: { show: false } };
  const options: uPlot.Options = {
    width: element.clientWidth,
    height: plotHeight,
    legend: { show: false },
    tzDate: (second) => uPlot.tzDate(browserDate(second * 1_000), "Etc/UTC"),
    // The last label of the time axis ends half its width behind the plot.
    padding: [8, 32, 0, 0],
    cursor: { sync: { key: "time" }, y: false, drag: { x: false, y: false } },
    scales: {
      x: {
        time: true,
        range: () => {
          const { seconds } = latest.current;
          return timeRange(seconds[0] ?? 0, seconds.at(-1) ?? 0);
        },
      },
      y: { range: (_, __, top) => [0, Math.max(top * 1.1, max, 1)] },
    },
    axes: [
      {
        ...axis,
        size: 28,
        space: 90,
        incrs: [...timeSteps],
        values: (_, ticks) => [...formatTicks(ticks)],
      },
      {
        ...axis,
        size: 62,
        values: (_, ticks) => ticks.map((tick) => latest.current.format(tick)),
      },
    ],
    series: [
      {},
      ...lines.map(({ label, dash, isFilled }, i) => ({
        label,
        stroke: colors[i] ?? text,
        width: 2,
        // A single value makes no line.
        points: { show: (plot: uPlot) => plot.data[0].length === 1, size: 6 },
        ...(dash === undefined ? {} : { dash: [...dash] }),
        ...(isFilled === true ? { fill: fadeOf(colors[i] ?? text) } : {}),
      })),
    ],
    hooks: {
      drawClear: [(plot) => drawBands(plot, latest.current.bands, colors)],
      draw: [(plot) => drawMarks(plot, latest.current.marks, text)],
      setCursor: [({ cursor }) => latest.current.onCursor(cursor.idx ?? undefined)],
    },
  };
  return new uPlot(options, dataOf(latest.current), element);
}

function fadeOf(color: string): string {
  return `color-mix(in srgb, ${color} 16%, transparent)`;
}

/** Shades, hatched so that they are seen without colors. */
function drawBands(plot: uPlot, bands: readonly PlotBand[], colors: readonly string[]): void {
  const { ctx: context, bbox } = plot;
  for (const { from, to, kind } of bands) {
    const left = Math.max(bbox.left, plot.valToPos(from, "x", true));
    const right = Math.min(bbox.left + bbox.width, plot.valToPos(to, "x", true));
    if (right <= left) continue;
    context.save();
    context.beginPath();
    context.rect(left, bbox.top, right - left, bbox.height);
    context.clip();
    context.strokeStyle = kind === "outage" ? (colors[1] ?? "gray") : "gray";
    context.globalAlpha = 0.7;
    context.lineWidth = 1;
    context.beginPath();
    const slope = kind === "outage" ? 1 : -1;
    for (let x = left - bbox.height; x < right + bbox.height; x += 7) {
      context.moveTo(x, bbox.top + bbox.height / 2 + (slope * bbox.height) / 2);
      context.lineTo(x + bbox.height, bbox.top + bbox.height / 2 - (slope * bbox.height) / 2);
    }
    context.stroke();
    context.restore();
  }
}

function drawMarks(plot: uPlot, marks: readonly PlotMark[], color: string): void {
  const { ctx: context, bbox } = plot;
  const bottom = bbox.top + bbox.height;
  context.save();
  context.strokeStyle = color;
  context.fillStyle = color;
  context.setLineDash([2, 3]);
  for (const { at } of marks) {
    const x = plot.valToPos(at, "x", true);
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    context.beginPath();
    context.moveTo(x, bbox.top);
    context.lineTo(x, bottom);
    context.stroke();
    context.beginPath();
    context.moveTo(x, bottom - 9);
    context.lineTo(x - 6, bottom);
    context.lineTo(x + 6, bottom);
    context.fill();
  }
  context.restore();
}

interface PlotRow {
  readonly second: number;
  readonly index: number;
}

function PlotTable({ title, seconds, lines, format }: PlotProps) {
  const columns: readonly TableColumn<PlotRow>[] = [
    {
      id: "time",
      title: "Time (UTC)",
      value: ({ second }) => formatTime(second * 1_000),
      render: ({ second }) => <span class="whole">{formatTime(second * 1_000)}</span>,
    },
    ...lines.map(({ label, values }) => ({
      id: label,
      title: label,
      align: "right" as const,
      value: ({ index }: PlotRow) => values[index] ?? -1,
      render: ({ index }: PlotRow) => textOf(values[index], format),
    })),
  ];
  const rows = seconds.map((second, index) => ({ second, index })).reverse();
  return (
    <DataTable
      label={title}
      columns={columns}
      rows={rows}
      rowId={({ second }) => String(second)}
      isPlain={true}
      empty="No data yet."
    />
  );
}

function savePlot({ title, seconds, lines }: PlotProps): void {
  const head = ["time", ...lines.map(({ label }) => label)];
  const rows = seconds.map((second, i) => {
    return [formatTime(second * 1_000), ...lines.map(({ values }) => values[i])];
  });
  saveCsv(title, [head, ...rows]);
}
