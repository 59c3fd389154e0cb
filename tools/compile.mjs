/**
 * Makes dist: the program and the packages that it uses, bundled into a few files. To read hundreds
 * of modules is half of what a start costs, and what is bundled runs where nothing is installed.
 * Plain JavaScript, since it runs before there is a build.
 *
 * Usage: node tools/compile.mjs [--watch]
 */
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { argv, execPath } from "node:process";
import { fileURLToPath } from "node:url";
import { context } from "esbuild";
import { buildConsole } from "./console.mjs";
import { joinChunks } from "./join-chunks.mjs";
import { buildLibrary } from "./library.mjs";
import { loadLaterPlugin } from "./load-later.mjs";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const dist = join(root, "dist");
const program = join(dist, "cli/main.js");

const entryPoints = [
  // What `bin` in package.json points at, and the thread that parses policies.
  "src/cli/main.ts",
  "src/app/policy/policy-worker.ts",
  "src/app/operator/policy-trial-worker.ts",
  "src/demo/three-layers/layers-caller-thread.ts",
  "src/demo/three-layers/layers-service-thread.ts",
  // Tests start these, many in one process.
  "src/app/app.ts",
  "src/app/base/v8-flags.ts",
  "src/app/config/config.ts",
  "src/app/base/logger.ts",
];

const options = {
  format: "esm",
  platform: "node",
  target: "node20.19",
  // A fifteenth less to install; names stay, so that a stack can be read.
  minifySyntax: true,
  sourcemap: true,
  sourcesContent: false,
  logLevel: "warning",
};

rmSync(dist, { recursive: true, force: true });
const library = buildLibrary(root, options);
const bundler = await context({
  ...options,
  absWorkingDir: root,
  entryPoints,
  outdir: dist,
  outbase: join(root, "src"),
  chunkNames: "chunks/[name]-[hash]",
  bundle: true,
  splitting: true,
  metafile: true,
  plugins: [loadLaterPlugin],
  // Packages that are no ES modules ask for Node's own by `require`.
  banner: { js: "const require = (id) => process.getBuiltinModule(id);" },
});
const { metafile } = await bundler.rebuild();
// While it watches, the bundler writes the chunks that changed, and counts on the others.
if (!argv.includes("--watch")) {
  const { outputs } = metafile;
  await joinChunks({ root, dist: "dist", outputs, starts: startsOf(outputs), options });
}
copyData();
// npm makes it executable when it installs, a build must too.
chmodSync(program, 0o755);
// For editors: what `headgate init` of an installed package names.
const schemaOf = (...flags) =>
  execFileSync(execPath, [program, "schema", ...flags], { maxBuffer: 16 * 1024 * 1024 });
const policySchema = schemaOf();
writeFileSync(join(dist, "policy.schema.json"), policySchema);
const schemas = { "policy-schema": policySchema, "scenario-schema": schemaOf("--scenario") };
const consoleInputs = await buildConsole(root, schemas);
const inputs = [...Object.keys(metafile.inputs), ...consoleInputs];
writeFileSync(join(dist, "LICENSES.txt"), licenceTexts(inputs));
await library;
if (argv.includes("--watch")) await bundler.watch();
else await bundler.dispose();

/** What processes and threads load when they start; the service counts as all commands together. */
function startsOf(outputs) {
  const outputOf = (source) =>
    Object.keys(outputs).find((path) => outputs[path].entryPoint === source);
  const main = ["src/cli/main.ts", "src/cli/program.ts"].map(outputOf);
  const imports = outputs[main[1]].imports.filter(({ external }) => external !== true);
  const commands = imports.filter(({ kind }) => kind === "dynamic-import");
  const service = ["src/cli/serve.ts", "src/app/service-process.ts", "src/app/base/logger.ts"];
  return [
    ...commands.map(({ path }) => ({ entries: [...main, path], weight: 2 })),
    { entries: [...main, ...service.map(outputOf)], weight: 20 },
    { entries: [outputOf("src/app/policy/policy-worker.ts")], weight: 20 },
    { entries: [outputOf("src/app/operator/policy-trial-worker.ts")], weight: 1 },
  ];
}

/** What `headgate generate` and `headgate check` hold configuration and objects against. */
function copyData() {
  mkdirSync(join(dist, "proto"), { recursive: true });
  for (const name of readdirSync(join(root, "proto"))) {
    if (name.endsWith(".binpb")) cpSync(join(root, "proto", name), join(dist, "proto", name));
  }
  const schemas = "generate/check/schemas";
  cpSync(join(root, "src", schemas), join(dist, schemas), { recursive: true });
}

/** The licences of all packages that are in the bundle, which ask to be with it. */
function licenceTexts(inputs) {
  const folder = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/;
  const folders = new Set(inputs.flatMap((path) => folder.exec(path)?.[0] ?? []));
  return [...folders]
    .sort()
    .map((path) => {
      const { name, version, license } = JSON.parse(
        readFileSync(join(path, "package.json"), "utf8"),
      );
      const files = readdirSync(path).filter((file) => /^(licen[cs]e|notice|copying)/i.test(file));
      const texts = files.map((file) => readFileSync(join(path, file), "utf8").trim());
      return [`${name} ${version}, ${license}`, ...texts].join("\n\n");
    })
    .join(`\n\n${"=".repeat(80)}\n\n`)
    .concat("\n");
}
