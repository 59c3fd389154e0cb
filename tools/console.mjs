/**
 * Makes dist/console: what a browser gets of src/console, with names by content, compressed
 * already, and held to the size that it may have.
 */
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { build } from "esbuild";

const mainPath = "src/console/app/main.tsx";

/** What only the view of simulations loads. */
const simulatorFile = /^(?:simulator|scenario)/;

/** All that the console may be, as it is sent, without the simulator. */
const compressedBytesMax = 265_000;

/**
 * All that the simulator may be, which browsers load with its view. It holds the parser of
 * policies, what recommends limits and budgets, and the ledger that counts calls in flight.
 */
const simulatorBytesMax = 285_000;

/**
 * Builds the console into dist/console.
 * @param {string} root of the checkout
 * @param {{"policy-schema": Buffer, "scenario-schema": Buffer}} schemas by which editors complete
 * @returns {Promise<string[]>} the files that went in
 */
export async function buildConsole(root, schemas) {
  const dist = join(root, "dist/console");
  const assets = join(dist, "assets");
  rmSync(dist, { recursive: true, force: true });
  mkdirSync(assets, { recursive: true });
  const pages = await bundle(root, { main: mainPath });
  // By itself: a page shares no file with its threads.
  const threads = await bundle(root, { simulator: "src/console/worker/simulator.ts" });
  for (const [name, schema] of Object.entries(schemas)) {
    writeAsset(assets, name, shortNames(slimSchema(JSON.parse(schema.toString()))));
  }
  writeAsset(assets, "scenarios", readScenarios(join(root, "scenarios")));
  writePage(root, pages);
  const names = readdirSync(assets);
  const files = [join(dist, "index.html"), ...names.map((name) => join(assets, name))];
  const sizes = { console: 0, simulator: 0 };
  for (const file of files) {
    sizes[simulatorFile.test(basename(file)) ? "simulator" : "console"] += compress(file);
  }
  const bounds = { console: compressedBytesMax, simulator: simulatorBytesMax };
  for (const [part, bytes] of Object.entries(sizes)) {
    if (bytes <= bounds[part]) continue;
    throw new Error(`the ${part} is ${bytes} bytes compressed, at most ${bounds[part]}`);
  }
  return [pages, threads].flatMap(({ inputs }) => Object.keys(inputs));
}

/** The page, with the names of its files; those that the first one imports are loaded with it. */
function writePage(root, { outputs }) {
  const dist = join(root, "dist/console");
  const names = readdirSync(join(dist, "assets"));
  const [main] = Object.values(outputs).filter(({ entryPoint }) => entryPoint === mainPath);
  const links = main.imports
    .filter(({ kind }) => kind === "import-statement")
    .map(({ path }) => `    <link rel="modulepreload" href="assets/${basename(path)}" />\n`);
  const page = readFileSync(join(root, "src/console/index.html"), "utf8")
    .replace(
      /"(main|policy-schema|scenario-schema|scenarios|simulator)\.(\w+)"/g,
      (_, name, kind) => {
        const found = names.find((one) => one.replace(/-\w{8}\./, ".") === `${name}.${kind}`);
        return `"assets/${found}"`;
      },
    )
    .replace("  </head>", `${links.join("")}  </head>`);
  writeFileSync(join(dist, "index.html"), page);
}

async function bundle(root, entryPoints) {
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints,
    outdir: join(root, "dist/console/assets"),
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
    plugins: [smallerFiles],
    metafile: true,
    logLevel: "warning",
  });
  return metafile;
}

/**
 * Makes two files smaller. Generated descriptors stand as their own bytes, which pack to a quarter
 * less than their base64. The plot library's ways to draw that no plot of ours takes are left out.
 */
const smallerFiles = {
  name: "smaller-files",
  setup({ onLoad }) {
    onLoad({ filter: /_pb\.js$/ }, ({ path }) => {
      const contents = readFileSync(path, "utf8").replace(/fileDesc\("([^"]+)"/, (_, packed) => {
        return `fileDesc(btoa(${JSON.stringify(Buffer.from(packed, "base64").toString("latin1"))})`;
      });
      return { contents, loader: "js" };
    });
    onLoad({ filter: /uPlot\.esm\.js$/ }, ({ path }) => {
      const contents = readFileSync(path, "utf8").replace(
        /\(paths\.(?:stepped|bars|spline)\s+= \w+\);/g,
        "",
      );
      return { contents, loader: "js" };
    });
  },
};

/** A file of data whose name has a hash of it. */
function writeAsset(assets, name, content) {
  const text = JSON.stringify(content);
  const digest = createHash("sha256").update(text).digest("hex").slice(0, 8);
  writeFileSync(join(assets, `${name}-${digest}.json`), text);
}

/** The scenarios of the package, and their policies. */
function readScenarios(folder) {
  const names = readdirSync(folder).filter((name) => name.endsWith(".yaml"));
  return names.sort().map((file) => ({ file, text: readFileSync(join(folder, file), "utf8") }));
}

/** What the editor reads of a schema: names, descriptions and choices, and no bounds. */
function slimSchema(part) {
  const { description, $ref, enum: choices, $defs, properties, items, anyOf, oneOf } = part;
  const ofEach = (named) =>
    named &&
    Object.fromEntries(Object.entries(named).map(([name, one]) => [name, slimSchema(one)]));
  // Others take no name of the user's own.
  const values = typeof part.additionalProperties === "object" && part.additionalProperties;
  return {
    description,
    $ref,
    enum: choices,
    $defs: ofEach($defs),
    properties: ofEach(properties),
    additionalProperties: values ? slimSchema(values) : undefined,
    items: items && slimSchema(items),
    anyOf: anyOf?.map(slimSchema),
    oneOf: oneOf?.map(slimSchema),
  };
}

/** The same schema with short names of its definitions, which nobody reads. */
function shortNames({ $defs, ...schema }) {
  const short = new Map(Object.keys($defs).map((name, i) => [name, i.toString(36)]));
  const named = Object.entries($defs).map(([name, part]) => [short.get(name), part]);
  const text = JSON.stringify({ ...schema, $defs: Object.fromEntries(named) });
  return JSON.parse(text, (key, value) =>
    key === "$ref" ? value.replace(/[^/]+$/, (name) => short.get(name) ?? name) : value,
  );
}

/**
 * Writes both compressed forms instead of a file, which every browser takes; the page itself stays,
 * for people who look at it by hand. The size of the larger one.
 */
function compress(file) {
  const content = readFileSync(file);
  const zipped = gzipSync(content, { level: 9 });
  const params = { [constants.BROTLI_PARAM_QUALITY]: 9 };
  writeFileSync(`${file}.gz`, zipped);
  writeFileSync(`${file}.br`, brotliCompressSync(content, { params }));
  if (!file.endsWith(".html")) rmSync(file);
  return zipped.length;
}
