import { z } from "zod";

const place = z.object({ x: z.int(), y: z.int(), w: z.int(), h: z.int() });

/** What tests look at in a dashboard. */
export const dashboardShape = z.object({
  uid: z.string(),
  title: z.string(),
  description: z.string(),
  schemaVersion: z.int(),
  links: z.array(z.object({ title: z.string(), url: z.string().optional() })),
  templating: z.object({ list: z.array(z.object({ name: z.string() })) }),
  panels: z.array(
    z.object({
      id: z.int(),
      type: z.string(),
      title: z.string(),
      gridPos: place,
      datasource: z.object({ uid: z.string() }).optional(),
      targets: z
        .array(z.object({ refId: z.string(), expr: z.string(), legendFormat: z.string() }))
        .default([]),
    }),
  ),
});

/** A dashboard as far as tests look at it. */
export type DashboardText = z.infer<typeof dashboardShape>;

/** Characters that a column of the grid takes in the drawing. */
const columnChars = 4;

/** The panels as boxes, so that a person sees the page without a Grafana. */
export function drawGrid({ title, panels }: DashboardText): string {
  const height = Math.max(0, ...panels.map(({ gridPos: { y, h } }) => y + h));
  const lines = Array.from({ length: height + 1 }, () => {
    return Array.from({ length: 24 * columnChars + 1 }, () => " ");
  });
  const put = (x: number, y: number, text: string): void => {
    const line = lines[y] ?? [];
    for (const [i, character] of [...text].entries()) line[x + i] = character;
  };
  for (const panel of panels) {
    const { x, y, w, h } = panel.gridPos;
    const [left, top] = [x * columnChars, y];
    const width = w * columnChars;
    const rule = panel.type === "row" ? "=" : "-";
    put(left, top, `+${rule.repeat(width - 1)}`);
    for (let line = top + 1; line < y + h; line += 1) put(left, line, "|");
    put(left + 2, top, ` ${panel.title} `.slice(0, width - 2));
    const { length } = panel.targets;
    if (length > 0 && h > 2) put(left + 2, top + 1, `${panel.type}, ${length}`);
  }
  return [title, ...lines.map((line) => line.join("").trimEnd())].join("\n");
}
