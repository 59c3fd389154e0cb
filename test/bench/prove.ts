import { mkdir, readFile, writeFile } from "node:fs/promises";
import { drawGrowth } from "./growth-picture.js";
import { lightParts } from "./light.js";
import { limitsParts } from "./limits.js";
import {
  formatProof,
  measureParts,
  type ProofGroup,
  type ProofParts,
  type ProofRow,
  proofJson,
  readLastRelease,
  recordRelease,
} from "./proof.js";
import { wideParts } from "./wide.js";

/** Which groups to measure, and what becomes of their rows. */
export interface ProofOrder {
  readonly groups: readonly ProofGroup[];
  /** How long a row of a server is measured. */
  readonly measureMs: number;
  /** Parts of groups whose name holds this text. */
  readonly only: string;
  readonly output: string;
  /** Whether the rows become those of the last release. */
  readonly isRecorded: boolean;
}

/** The picture of a run, and the one that the docs show. */
const pictures = { run: "test-output/growth.svg", docs: "docs/images/growth.svg" };

/** Measures groups of rows. A missed target is shown and fails nothing. @returns what to print */
export async function prove(order: ProofOrder): Promise<string> {
  const { groups, measureMs, only, output, isRecorded } = order;
  if (isRecorded && only !== "") throw new Error("--record takes all parts of a group, not --only");
  const rows: ProofRow[] = [];
  for (const group of groups) {
    rows.push(...(await measureParts(group, partsOf(group, measureMs), only)));
  }
  if (rows.length === 0) {
    const names = groups.flatMap((group) => Object.keys(partsOf(group, measureMs)));
    throw new Error(`no part holds "${only}"; there are: ${names.join(", ")}`);
  }
  const last = await readLastRelease();
  await draw(rows, isRecorded);
  if (isRecorded) {
    const { version } = JSON.parse(await readFile("package.json", "utf8")) as { version: string };
    await recordRelease(rows, { version, date: new Date().toISOString().slice(0, 10) });
  }
  return output === "json" ? proofJson(rows, last) : formatProof(rows, last);
}

function partsOf(group: ProofGroup, measureMs: number): ProofParts {
  switch (group) {
    case "light":
      return lightParts();
    case "limits":
      return limitsParts(measureMs);
    case "wide":
      return wideParts(measureMs);
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
