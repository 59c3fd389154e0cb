/**
 * Makes dist/library: what `exports` of package.json lets other programs import, as ES modules that
 * share chunks, with the declarations of their types. Nothing of it is in the program's files, so
 * that a bundler takes only what is used.
 */
import { execFile } from "node:child_process";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { execPath } from "node:process";
import { promisify } from "node:util";
import { build } from "esbuild";

/**
 * @param {string} root
 * @param {import("esbuild").BuildOptions} options of all builds
 */
export async function buildLibrary(root, options) {
  const dist = join(root, "dist/library");
  const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const modules = Object.values(exports).flatMap(({ default: path = "" }) =>
    path.startsWith("./dist/library/") ? [path.slice("./dist/library/".length, -".js".length)] : [],
  );
  rmSync(dist, { recursive: true, force: true });
  await Promise.all([bundle(root, dist, { options, modules }), declare(root, dist, modules)]);
  const manifest = { type: "module", sideEffects: false };
  writeFileSync(join(dist, "package.json"), `${JSON.stringify(manifest)}\n`);
}

function bundle(root, dist, { options, modules }) {
  return build({
    ...options,
    absWorkingDir: root,
    entryPoints: modules.map((module) => `src/${module}.ts`),
    outdir: dist,
    outbase: join(root, "src"),
    chunkNames: "chunks/[name]-[hash]",
    bundle: true,
    splitting: true,
    // Adapters are for packages that their users have.
    packages: "external",
  });
}

/** The declarations of the modules and of what they name; those of everything else go again. */
async function declare(root, dist, modules) {
  const compiler = join(root, "node_modules/typescript/bin/tsc");
  const words = [compiler, "-p", "src/client/tsconfig.json", "--outDir", dist];
  await promisify(execFile)(execPath, words, { cwd: root }).catch(({ stdout }) => {
    throw new Error(`the library has no types: ${stdout}`);
  });
  const named = new Set();
  for (const module of modules) follow(join(dist, `${module}.d.ts`), named);
  for (const path of readdirSync(dist, { recursive: true })) {
    if (path.endsWith(".d.ts") && !named.has(join(dist, path))) rmSync(join(dist, path));
  }
}

function follow(path, named) {
  if (named.has(path)) return;
  named.add(path);
  for (const [, target] of readFileSync(path, "utf8").matchAll(
    /(?:from|import\() ?"(\.[^"]+)\.js"/g,
  )) {
    follow(join(dirname(path), `${target}.d.ts`), named);
  }
}
