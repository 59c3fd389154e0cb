import { mkdirSync, renameSync } from "node:fs";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { buildSync } from "esbuild";

const folder = fileURLToPath(new URL("../../node_modules/.cache/test-programs/", import.meta.url));

/** Those that this process has bundled. */
const bundles = new Map<string, string>();

/**
 * A program of the tests with all that it imports in one file, for `node`: to translate each module
 * as it is imported takes five times as long as the start of such a file.
 *
 * @returns the file's path
 */
export function bundledProgram(program: URL): string {
  const source = fileURLToPath(program);
  const known = bundles.get(source);
  if (known !== undefined) return known;
  const bundle = `${folder}${basename(source, ".ts")}.mjs`;
  // Whole for whoever starts it: other processes bundle the same programs.
  const part = `${bundle}.${process.pid}`;
  mkdirSync(folder, { recursive: true });
  buildSync({
    entryPoints: [source],
    outfile: part,
    bundle: true,
    format: "esm",
    platform: "node",
    target: "node20.19",
    logLevel: "warning",
    // Packages that are no ES modules ask for Node's own by `require`.
    banner: {
      js: [
        'import { createRequire as makeRequire } from "node:module";',
        "const require = makeRequire(import.meta.url);",
      ].join(""),
    },
  });
  renameSync(part, bundle);
  bundles.set(source, bundle);
  return bundle;
}
