import { mkdir, readFile, writeFile } from "node:fs/promises";
import { measureGrowth } from "./growth.js";
import { drawGrowth } from "./growth-picture.js";
import { measureLight } from "./light.js";
import { measureLimits } from "./limits.js";
import {
  formatProof,
  type ProofGroup,
  type ProofRow,
  proofJson,
  readLastRelease,
  recordRelease,
} from "./proof.js";
import { measureReferences } from "./references.js";
import { measureWide } from "./wide.js";

/** Which groups to measure, and what becomes of their rows. */
export interface ProofOrder {
  readonly groups: readonly ProofGroup[];
  /** How long a row of a server is measured. */
  readonly measureMs: number;
  readonly output: string;
  /** Whether the rows become those of the last release. */
  readonly isRecorded: boolean;
}

/** The picture of a run, and the one that the docs show. */
const pictures = { run: "test-output/growth.svg", docs: "docs/images/growth.svg" };

/** Measures groups of rows. A missed target is shown and fails nothing. @returns what to print */
export async function prove(order: ProofOrder): Promise<string> {
  const rows: ProofRow[] = [];
  for (const group of order.groups) rows.push(...(await groupRows(group, order.measureMs)));
  const last = await readLastRelease();
  await draw(rows, order.isRecorded);
  if (order.isRecorded) {
    const { version } = JSON.parse(await readFile("package.json", "utf8")) as { version: string };
    await recordRelease(rows, { version, date: new Date().toISOString().slice(0, 10) });
  }
  return order.output === "json" ? proofJson(rows, last) : formatProof(rows, last);
}

async function groupRows(group: ProofGroup, measureMs: number): Promise<readonly ProofRow[]> {
  switch (group) {
    case "light":
      return measureLight();
    case "limits":
      return [
        ...(await measureLimits(measureMs)),
        ...(await measureGrowth(measureMs)),
        ...(await measureReferences(measureMs)),
      ];
    case "wide":
      return measureWide(measureMs);
  }
}

async function draw(rows: readonly ProofRow[], isRecorded: boolean): Promise<void> {
  const svg = drawGrowth(rows);
  if (svg === undefined) return;
  await mkdir("test-output", { recursive: true });
  await writeFile(pictures.run, svg);
  const isWhole = ["keys", "Envoys"].every((by) => rows.some(({ growth }) => growth?.by === by));
  // That of the docs has all curves.
  if (isRecorded && isWhole) await writeFile(pictures.docs, svg);
}
