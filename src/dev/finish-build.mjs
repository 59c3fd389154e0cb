/**
 * The last step of `npm run build`: makes dist whole after the compiler. Plain JavaScript on Node's
 * built-ins, like everything here that runs before there is a build.
 */
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "../..");
const src = join(root, "src");
const dist = join(root, "dist");
/** Beside the sources, and so beside what is built of them. */
const imageFolder = "proto";
const schemaFolder = join("generate", "check", "schemas");

copyGenerated();
copyLock();
copyImage();
copySchemas();
removeOrphans();
// What `bin` in package.json points at: npm makes it executable when it installs, a build must too.
chmodSync(join(dist, "cli/main.js"), 0o755);

/**
 * protoc-gen-es writes .js with .d.ts beside it, and the compiler emits neither. `allowJs` would
 * not help: for the compiler a .d.ts hides the .js of the same name.
 */
function copyGenerated() {
  rmSync(join(dist, "gen"), { recursive: true, force: true });
  cpSync(join(src, "gen"), join(dist, "gen"), {
    recursive: true,
    filter: (path) => !path.endsWith(".d.ts"),
  });
}

/** Shared with the steps that run before the compiler, and so no TypeScript. */
function copyLock() {
  mkdirSync(join(dist, "dev"), { recursive: true });
  cpSync(join(src, "dev/lock.mjs"), join(dist, "dev/lock.mjs"));
}

/** What `headgate generate` and `headgate check --envoy` hold configuration against. */
function copyImage() {
  mkdirSync(join(dist, imageFolder), { recursive: true });
  for (const name of readdirSync(join(root, imageFolder))) {
    if (name.endsWith(".binpb"))
      cpSync(join(root, imageFolder, name), join(dist, imageFolder, name));
  }
}

/** What `headgate generate` holds objects of Kubernetes against. */
function copySchemas() {
  cpSync(join(src, schemaFolder), join(dist, schemaFolder), { recursive: true });
}

/** The compiler leaves the output of a deleted source behind, and the package would ship it. */
function removeOrphans() {
  for (const entry of readdirSync(dist, { recursive: true, withFileTypes: true })) {
    const path = relative(dist, join(entry.parentPath, entry.name));
    const source = join(src, path.replace(/\.js(\.map)?$/, ".ts"));
    const isMade =
      path === "sbom.cdx.json" ||
      path.startsWith(`gen${sep}`) ||
      path.startsWith(`${imageFolder}${sep}`);
    if (entry.isFile() && !isMade && !existsSync(source)) {
      rmSync(join(dist, path));
    }
  }
}
