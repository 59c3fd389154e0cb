/**
 * Makes compose-schema.jsonl: the published schema of compose files, without its texts. To make it
 * again, where Go's module proxy can be reached:
 *
 *   go mod download -json github.com/compose-spec/compose-go/v2@v2.9.0   (prints the folder, "Dir")
 *   node test/support/compose-schema.mjs <Dir>/schema/compose-spec.json
 */
import { readFileSync, writeFileSync } from "node:fs";
import { argv } from "node:process";
import { fileURLToPath } from "node:url";

const texts = ["title", "description", "deprecated"];
const schema = JSON.parse(readFileSync(argv[2] ?? "", "utf8"));
const file = fileURLToPath(new URL("compose-schema.jsonl", import.meta.url));
writeFileSync(file, `${JSON.stringify(strip(schema))}\n`);

/** Leaves out texts, and not properties of those names. */
function strip(value) {
  if (Array.isArray(value)) return value.map(strip);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).filter(
    ([name, one]) => !texts.includes(name) || typeof one === "object",
  );
  return Object.fromEntries(entries.map(([name, one]) => [name, strip(one)]));
}
