/**
 * Makes dist/console: what a browser gets of src/console, with names by content, compressed
 * already, and held to the size that it may have.
 */
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { build } from "esbuild";

/** All that the console may be, as it is sent. */
const compressedBytesMax = 250_000;

/**
 * Builds the console into dist/console.
 * @param {string} root of the checkout
 * @param {Buffer} schema of policies, which the editor completes by
 * @returns {Promise<string[]>} the files that went in
 */
export async function buildConsole(root, schema) {
  const dist = join(root, "dist/console");
  const assets = join(dist, "assets");
  rmSync(dist, { recursive: true, force: true });
  mkdirSync(assets, { recursive: true });
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: { main: "src/console/app/main.tsx" },
    outdir: assets,
    entryNames: "[name]-[hash]",
    chunkNames: "[name]-[hash]",
    bundle: true,
    splitting: true,
    minify: true,
    format: "esm",
    platform: "browser",
    target: "es2023",
    tsconfig: "src/console/tsconfig.json",
    legalComments: "none",
    metafile: true,
    logLevel: "warning",
  });
  const digest = createHash("sha256").update(schema).digest("hex").slice(0, 8);
  const schemaName = `policy-schema-${digest}.json`;
  const slim = JSON.stringify(slimSchema(JSON.parse(schema.toString())));
  writeFileSync(join(assets, schemaName), slim);
  const names = readdirSync(assets);
  const nameOf = (ending) =>
    names.find((name) => name.startsWith("main-") && name.endsWith(ending));
  const page = readFileSync(join(root, "src/console/index.html"), "utf8")
    .replace("main.css", `assets/${nameOf(".css")}`)
    .replace("main.js", `assets/${nameOf(".js")}`)
    .replace("policy-schema.json", `assets/${schemaName}`);
  writeFileSync(join(dist, "index.html"), page);
  const files = [join(dist, "index.html"), ...names.map((name) => join(assets, name))];
  let bytes = 0;
  for (const file of files) bytes += compress(file);
  if (bytes > compressedBytesMax) {
    throw new Error(`the console is ${bytes} bytes compressed, at most ${compressedBytesMax}`);
  }
  return Object.keys(metafile.inputs);
}

/** What the editor reads of a schema: names, descriptions and choices, and no bounds. */
function slimSchema(part) {
  const { description, $ref, enum: choices, $defs, properties, items, anyOf, oneOf } = part;
  const ofEach = (named) =>
    named &&
    Object.fromEntries(Object.entries(named).map(([name, one]) => [name, slimSchema(one)]));
  return {
    description,
    $ref,
    enum: choices,
    $defs: ofEach($defs),
    properties: ofEach(properties),
    items: items && slimSchema(items),
    anyOf: anyOf?.map(slimSchema),
    oneOf: oneOf?.map(slimSchema),
  };
}

/** Writes both compressed forms beside a file; the size of the larger one. */
function compress(file) {
  const content = readFileSync(file);
  const zipped = gzipSync(content, { level: 9 });
  const params = { [constants.BROTLI_PARAM_QUALITY]: 9 };
  writeFileSync(`${file}.gz`, zipped);
  writeFileSync(`${file}.br`, brotliCompressSync(content, { params }));
  return zipped.length;
}
