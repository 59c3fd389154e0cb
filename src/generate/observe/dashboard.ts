import type { Tree, TreeMap } from "../base/document.js";

/** Number of columns in Grafana's grid. */
export const gridColumns = 24;

/** Schema version of Grafana 12. Later versions of Grafana migrate it automatically. */
const schemaVersion = 41;

/** Units of numbers. Source: Grafana, standard units. */
export type Unit = "short" | "reqps" | "s" | "ms" | "percentunit" | "bytes" | "none";

/** A query, and the legend of its lines. */
export interface Query {
  readonly expr: string;
  /** Refers to labels as `{{service}}`. */
  readonly legend: string;
}

/** A horizontal line in a panel, or the number from which a value has that colour. */
export interface Mark {
  readonly from: number;
  readonly color: "orange" | "red" | "green";
}

/** One panel. */
export interface Panel {
  readonly kind: "lines" | "stacked" | "number";
  readonly title: string;
  /** What it shows, and how to interpret it. */
  readonly about: string;
  readonly unit: Unit;
  readonly queries: readonly Query[];
  /** In ascending order. */
  readonly marks?: readonly Mark[];
  /** Width in columns. Default 4 for a number; other panels share a line, at most three. */
  readonly columns?: number;
}

/** Panels under one heading. */
export interface Section {
  readonly title: string;
  readonly panels: readonly Panel[];
}

/** A variable that a person chooses, with values from a query. */
export interface Choice {
  readonly name: string;
  readonly label: string;
  /** Example: `label_values(headgate_build_info, job)`. */
  readonly query: string;
  /** Extracts the offered value from each result: the first group. Undefined: the whole result. */
  readonly regex?: string;
}

/** One dashboard. */
interface Dashboard {
  /** Must not change as long as it is the same dashboard. At most 40 characters. */
  readonly uid: string;
  readonly title: string;
  readonly about: string;
  readonly choices: readonly Choice[];
  readonly sections: readonly Section[];
  /** URL of the runbook. Undefined if it is not set. */
  readonly runbookUrl: string | undefined;
}

/** Returns the height of a panel in grid rows. */
function rowsOf(panel: Panel): number {
  return panel.kind === "number" ? 4 : 8;
}

function columnsOf(panel: Panel): number {
  return panel.columns ?? (panel.kind === "number" ? 4 : 8);
}

/**
 * Renders a dashboard as Grafana reads it. Ids are the order of the panels, and it has no time of
 * creation.
 *
 * Source: Grafana, "Dashboard JSON model".
 */
export function renderDashboard(dashboard: Dashboard): TreeMap {
  const { uid, title, about, choices, runbookUrl } = dashboard;
  return {
    uid,
    title,
    description: about,
    tags: ["headgate"],
    schemaVersion,
    version: 1,
    editable: true,
    graphTooltip: 1,
    refresh: "10s",
    time: { from: "now-1h", to: "now" },
    timezone: "browser",
    links: [
      {
        title: "Headgate",
        type: "dashboards",
        tags: ["headgate"],
        asDropdown: true,
        includeVars: false,
        keepTime: true,
      },
      ...(runbookUrl === undefined
        ? []
        : [{ title: "Runbook", type: "link", url: runbookUrl, targetBlank: true }]),
    ],
    templating: { list: [datasourceVariable, ...choices.map(choiceVariable)] },
    panels: layOut(dashboard.sections),
  };
}

const datasource = { type: "prometheus", uid: `${"$"}{datasource}` } as const;

const datasourceVariable: TreeMap = {
  name: "datasource",
  label: "Prometheus",
  type: "datasource",
  query: "prometheus",
  // If no data source has this uid, Grafana uses the first one.
  current: { text: "Prometheus", value: "prometheus", selected: true },
  includeAll: false,
  multi: false,
};

function choiceVariable({ name, label, query, regex }: Choice): TreeMap {
  return {
    name,
    label,
    type: "query",
    datasource,
    query: { query, refId: name },
    definition: query,
    regex,
    refresh: 2,
    sort: 1,
    multi: true,
    includeAll: true,
    allValue: ".*",
    current: { text: ["All"], value: [`${"$"}__all`], selected: true },
  };
}

/** Places panels from left to right, and on the next line if a line is full. */
function layOut(sections: readonly Section[]): readonly TreeMap[] {
  const placed: TreeMap[] = [];
  let y = 0;
  for (const { title, panels } of sections) {
    const gridPos = { h: 1, w: gridColumns, x: 0, y };
    const heading = { type: "row", title, collapsed: false, gridPos, panels: [] };
    placed.push({ id: placed.length + 1, ...heading });
    y += 1;
    for (const line of linesOf(panels)) {
      let x = 0;
      for (const panel of line) {
        const [w, h] = [widthIn(line, panel), rowsOf(panel)];
        placed.push({ id: placed.length + 1, ...renderPanel(panel), gridPos: { h, w, x, y } });
        x += w;
      }
      y += Math.max(...line.map(rowsOf));
    }
  }
  return placed;
}

/** Puts as many panels in a line as fit. */
function linesOf(panels: readonly Panel[]): readonly (readonly Panel[])[] {
  const lines: Panel[][] = [];
  let columns = gridColumns;
  for (const panel of panels) {
    columns += columnsOf(panel);
    if (columns > gridColumns) {
      lines.push([]);
      columns = columnsOf(panel);
    }
    lines.at(-1)?.push(panel);
  }
  return lines;
}

/** Curves share a whole line, even if there are too few to fill it. */
function widthIn(line: readonly Panel[], panel: Panel): number {
  const areCurves = line.every(({ kind, columns }) => kind !== "number" && columns === undefined);
  return areCurves ? Math.floor(gridColumns / line.length) : columnsOf(panel);
}

function renderPanel(panel: Panel): TreeMap {
  const { title, about, unit, queries, marks = [] } = panel;
  const isNumber = panel.kind === "number";
  return {
    type: isNumber ? "stat" : "timeseries",
    title,
    description: about,
    datasource,
    targets: queries.map(({ expr, legend }, index) => ({
      refId: refId(index),
      datasource,
      editorMode: "code",
      expr,
      legendFormat: legend,
      range: true,
    })),
    fieldConfig: { defaults: fieldDefaults({ unit, marks, kind: panel.kind }), overrides: [] },
    options: isNumber ? numberOptions : lineOptions,
  };
}

/** `A` to `Z`, then `A1`. Grafana only requires that they differ. */
function refId(index: number): string {
  const letter = String.fromCharCode(65 + (index % 26));
  return index < 26 ? letter : `${letter}${Math.floor(index / 26)}`;
}

function fieldDefaults(panel: {
  readonly unit: Unit;
  readonly marks: readonly Mark[];
  readonly kind: "lines" | "stacked" | "number";
}): Tree {
  const { unit, marks, kind } = panel;
  const steps = [{ color: "green" }, ...marks.map(({ from, color }) => ({ color, value: from }))];
  if (kind === "number") return { unit, thresholds: { mode: "absolute", steps } };
  return {
    unit,
    min: 0,
    custom: {
      drawStyle: "line",
      lineWidth: 1,
      fillOpacity: kind === "stacked" ? 30 : 5,
      showPoints: "never",
      spanNulls: false,
      stacking: { mode: kind === "stacked" ? "normal" : "none", group: "A" },
      thresholdsStyle: { mode: marks.length === 0 ? "off" : "dashed" },
    },
    thresholds: { mode: "absolute", steps },
  };
}

const numberOptions: TreeMap = {
  colorMode: "value",
  graphMode: "area",
  justifyMode: "auto",
  orientation: "auto",
  textMode: "auto",
  reduceOptions: { calcs: ["lastNotNull"], fields: "", values: false },
};

const lineOptions: TreeMap = {
  legend: { displayMode: "list", placement: "bottom", showLegend: true, calcs: [] },
  tooltip: { mode: "multi", sort: "desc" },
};
