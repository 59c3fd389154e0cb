import { readdirSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { TestAuthority } from "../support/certificates.js";
import { validateWithEnvoy } from "../support/envoy-validation.js";
import { useStage } from "../support/stage.js";

const stage = useStage("test");

/** How long one check by Envoy may take, in milliseconds. */

/** Whole Envoys of the golden folders; fragments are none, and are checked as messages. */
const root = "test/golden/generate/envoy";
const bootstraps = readdirSync(root, { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith("/envoy.yaml"))
  .sort();

describe("test/golden/generate/envoy", () => {
  it("holds whole Envoys", () => {
    expect(bootstraps.length).toBeGreaterThan(50);
  });

  it.each(bootstraps)("%s is valid for Envoy itself", async (path) => {
    const configPath = join(stage.folder, "envoy.yaml");
    await writeFile(configPath, await withFiles(readFileSync(join(root, path), "utf8")));
    const { exit, output } = await validateWithEnvoy(stage, ["--config-path", configPath]);
    expect(exit, output).toEqual({ code: 0 });
    expect(output).not.toMatch(/deprecated|unknown field/i);
  });
});

/** The files that a policy names, in the test's own folder: Envoy reads them when it validates. */
async function withFiles(text: string): Promise<string> {
  if (!text.includes(policyFolder)) return text;
  const authority = new TestAuthority();
  const { certificate, key } = authority.issue({ names: ["proxy.example"] });
  await writeFile(join(stage.folder, "ca.pem"), authority.certificate);
  await writeFile(join(stage.folder, "proxy.pem"), certificate);
  await writeFile(join(stage.folder, "proxy.key"), key);
  return text.replaceAll(policyFolder, stage.folder);
}

/** Where policies of the golden folders have their certificates. */
const policyFolder = "/etc/envoy";
