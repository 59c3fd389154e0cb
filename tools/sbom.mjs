/**
 * Writes dist/sbom.cdx.json, or the file that is named: every package that the bundle is made of
 * (`bundled` in package.json, and what they need), with its version, licence and digest, as
 * CycloneDX 1.5. npm reads them from package-lock.json.
 * What it says of the moment and the machine is taken out: one lock file gives one document.
 */
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { argv } from "node:process";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
const { name, version, bundled } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const shipped = new Set([`${name}@${version}`]);
for (const one of bundled) ship(placeOf("", one));
const words = ["sbom", "--sbom-format", "cyclonedx", "--sbom-type", "application"];
const { status, stdout, stderr } = spawnSync("npm", [...words, "--package-lock-only"], {
  cwd: root,
  encoding: "utf8",
  maxBuffer: 64 * 1024 * 1024,
});
if (status !== 0) throw new Error(`npm sbom failed: ${stderr}`);
const { serialNumber: _number, metadata, components, dependencies, ...rest } = JSON.parse(stdout);
const { timestamp: _timestamp, tools: _tools, ...about } = metadata;
const document = {
  ...rest,
  // npm calls it by its folder.
  metadata: { ...about, component: { ...about.component, name } },
  components: components
    .filter((component) => shipped.has(component["bom-ref"]))
    // npm takes them for tools of the build, since nothing installs them.
    .map((component) => ({ ...component, scope: "required", properties: [] })),
  dependencies: dependencies
    .filter(({ ref }) => shipped.has(ref))
    .map(({ ref, dependsOn = [] }) => ({
      ref,
      dependsOn: dependsOn.filter((other) => {
        const isOwn =
          ref !== `${name}@${version}` || bundled.includes(other.replace(/@[^@]*$/, ""));
        return shipped.has(other) && isOwn;
      }),
    })),
};
const path = argv[2] ?? join(root, "dist/sbom.cdx.json");
writeFileSync(path, `${JSON.stringify(document, undefined, 2)}\n`);

/** Adds a package and what it needs; a peer may be absent. */
function ship(path) {
  const {
    version: found,
    dependencies: needed = {},
    peerDependencies: peers = {},
  } = packages[path] ?? {};
  const ref = `${path.replace(/^.*node_modules\//, "")}@${found}`;
  if (found === undefined || shipped.has(ref)) return;
  shipped.add(ref);
  for (const one of Object.keys({ ...needed, ...peers })) ship(placeOf(path, one));
}

/** Where Node finds a package for the one at a path: below it, or below a folder around it. */
function placeOf(path, needed) {
  const place = join(path, "node_modules", needed);
  if (place in packages || path === "") return place;
  return placeOf(path.replace(/\/?node_modules\/(?:@[^/]+\/)?[^/]+$/, ""), needed);
}
