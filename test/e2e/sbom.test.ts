import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";

const lockShape = z.object({
  packages: z.record(
    z.string(),
    z.object({
      version: z.string(),
      integrity: z.string().optional(),
      dependencies: z.record(z.string(), z.string()).optional(),
      peerDependencies: z.record(z.string(), z.string()).optional(),
      devDependencies: z.record(z.string(), z.string()).optional(),
    }),
  ),
});

const manifestShape = z.object({ bundled: z.array(z.string()) });

const documentShape = z.object({
  bomFormat: z.literal("CycloneDX"),
  specVersion: z.literal("1.5"),
  metadata: z.object({ component: z.object({ name: z.string(), version: z.string() }) }),
  components: z.array(
    z.object({
      "bom-ref": z.string(),
      purl: z.string(),
      hashes: z.array(z.object({ alg: z.literal("SHA-512"), content: z.string() })).length(1),
      licenses: z.array(z.unknown()).min(1),
    }),
  ),
  dependencies: z.array(z.object({ ref: z.string(), dependsOn: z.array(z.string()) })),
});

let folder: string;
let text: string;
let document: z.infer<typeof documentShape>;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "headgate-sbom-"));
  text = writeDocument("first.json");
  document = documentShape.parse(JSON.parse(text));
});

afterAll(() => rmSync(folder, { recursive: true }));

function writeDocument(name: string): string {
  const path = join(folder, name);
  execFileSync(process.execPath, ["tools/sbom.mjs", path], { stdio: "pipe" });
  return readFileSync(path, "utf8");
}

const { packages } = lockShape.parse(JSON.parse(readFileSync("package-lock.json", "utf8")));
const { bundled } = manifestShape.parse(JSON.parse(readFileSync("package.json", "utf8")));

/** What is bundled and what that needs, by name and version, with the digest in hexadecimal. */
function shippedPackages(): ReadonlyMap<string, string> {
  const digests = new Map<string, string>();
  const paths = bundled.map((name) => `node_modules/${name}`);
  for (const path of paths) {
    const { version, integrity = "", ...needs } = packages[path] ?? expect.fail(`no ${path}`);
    const ref = `${path.split("node_modules/").at(-1)}@${version}`;
    if (digests.has(ref)) continue;
    const digest = Buffer.from(integrity.replace(/^sha512-/, ""), "base64").toString("hex");
    digests.set(ref, digest);
    for (const name of Object.keys({ ...needs.dependencies, ...needs.peerDependencies })) {
      const parents = path.split("/node_modules/").map((_, index, parts) => {
        return parts.slice(0, parts.length - index).join("/node_modules/");
      });
      const places = [...parents.map((one) => `${one}/`), ""].map((one) => {
        return `${one}node_modules/${name}`;
      });
      const place = places.find((one) => one in packages);
      if (place !== undefined) paths.push(place);
    }
  }
  return digests;
}

describe("sbom.mjs", () => {
  it("names every package that is bundled with its digest, and no other", () => {
    const wanted = shippedPackages();
    const found = document.components.map(({ "bom-ref": ref, hashes }) => [
      ref,
      hashes[0]?.content,
    ]);
    expect(new Map(found.map(([ref, content]) => [ref, content]))).toEqual(wanted);
    expect(found).toHaveLength(wanted.size);
  });

  it("says what it is about, and who needs whom", () => {
    const { version, devDependencies = {} } = packages[""] ?? {};
    expect(document.metadata.component).toMatchObject({ name: "headgate", version });
    const own = document.dependencies.find(({ ref }) => ref === `headgate@${version}`);
    const direct = bundled.map((name) => `${name}@${devDependencies[name]}`);
    expect([...(own?.dependsOn ?? [])].sort()).toEqual(direct.sort());
  });

  it("is the same each time, and names neither this machine nor its folders", () => {
    expect(writeDocument("second.json")).toBe(text);
    expect(text).not.toContain(resolve("."));
  });
});
