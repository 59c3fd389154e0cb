import { readFileSync } from "node:fs";
import { parseAllDocuments } from "yaml";

/** The documents of a YAML file, as plain values; throws on a mistake or a name given twice. */
export function readYamlFile(path: string): readonly unknown[] {
  return parseAllDocuments(readFileSync(path, "utf8"), { uniqueKeys: true }).map((document) => {
    const [error] = document.errors;
    if (error !== undefined) throw new Error(`${path}: ${error.message}`);
    const value: unknown = document.toJS();
    return value;
  });
}
