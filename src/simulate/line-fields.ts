import { type LogLine, lineText } from "./log-line.js";

/** The fields of a line of a log, a line at a time. */
export interface LineFields {
  /** Takes a line; false for one that has no fields. */
  take(line: LogLine): boolean;
  /** What the line says under a name, by the name's place; undefined: nothing. */
  value(place: number): string | undefined;
}

/** Cells of CSV below a line of titles. */
export class CsvFields implements LineFields {
  /** The column of each name, by its place; undefined: no title says it. */
  readonly #columns: readonly (number | undefined)[];
  /** So many cells are looked at. */
  readonly #cellsMax: number;
  #cells: readonly string[] = [];

  constructor(titles: string, names: readonly string[]) {
    const columns = new Map(splitCsv(titles).map((title, column) => [title.trim(), column]));
    this.#columns = names.map((name) => columns.get(name));
    this.#cellsMax = 1 + Math.max(...this.#columns.map((column) => column ?? 0));
  }

  take(line: LogLine): boolean {
    const text = lineText(line);
    this.#cells = text.includes('"') ? splitCsv(text) : text.split(",", this.#cellsMax);
    return true;
  }

  value(place: number): string | undefined {
    const column = this.#columns[place];
    return column === undefined ? undefined : this.#cells[column];
  }
}

/** The cells of a line; a cell in quotes may hold commas, and quotes twice. Source: RFC 4180. */
export function splitCsv(line: string): readonly string[] {
  if (!line.includes('"')) return line.split(",");
  const cells: string[] = [];
  const cell = /(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/gy;
  for (let match = cell.exec(line); match !== null; match = cell.exec(line)) {
    cells.push(match[1]?.replaceAll('""', '"') ?? match[2] ?? "");
    if (cell.lastIndex >= line.length) break;
  }
  return cells;
}
