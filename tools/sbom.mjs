/**
 * Writes dist/sbom.cdx.json, or the file that is named: every package that an installation has,
 * with its version, licence and digest, as CycloneDX 1.5. npm reads them from package-lock.json.
 * What it says of the moment and the machine is taken out: one lock file gives one document.
 */
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { argv } from "node:process";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const { name, packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
// Not `--omit dev`: npm then leaves out what packages for development need as well (yaml, say).
const shipped = new Set(
  Object.entries(packages)
    .filter(([, { dev }]) => dev !== true)
    .map(([path, { version }]) => `${path.replace(/^.*node_modules\//, "") || name}@${version}`),
);
const { version, devDependencies } = packages[""];
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
  components: components.filter((component) => shipped.has(component["bom-ref"])),
  dependencies: dependencies
    .filter(({ ref }) => shipped.has(ref))
    .map(({ ref, dependsOn = [] }) => ({
      ref,
      dependsOn: dependsOn.filter((other) => {
        const isForDevelopment = other.replace(/@[^@]*$/, "") in devDependencies;
        return shipped.has(other) && !(ref === `${name}@${version}` && isForDevelopment);
      }),
    })),
};
const path = argv[2] ?? join(root, "dist/sbom.cdx.json");
writeFileSync(path, `${JSON.stringify(document, undefined, 2)}\n`);
