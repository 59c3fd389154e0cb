import { writeCsv } from "../../simulate/report/csv.js";
import { saveFile } from "../state/browser.js";

/** Lets the user save rows as a CSV file, named after a title. */
export function saveCsv(
  title: string,
  rows: readonly (readonly (string | number | undefined)[])[],
): void {
  const name = title
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .slice(0, 60);
  saveFile(`headgate-${name}.csv`, writeCsv(rows));
}
