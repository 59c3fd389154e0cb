import { readdirSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { TestAuthority } from "../support/certificates.js";
import { validateWithEnvoy } from "../support/envoy-validation.js";
import { useStage } from "../support/stage.js";

const stage = useStage("file");

/** Whole Envoys of the golden folders; fragments are none, and are checked as messages. */
const root = "test/golden/generate/envoy";
const bootstraps = readdirSync(root, { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith("/envoy.yaml"))
  .sort();

/** The files that policies name: Envoy reads them when it validates. */
beforeAll(async () => {
  const authority = new TestAuthority();
  const { certificate, key } = authority.issue({ names: ["proxy.example"] });
  await writeFile(join(stage.folder, "ca.pem"), authority.certificate);
  await writeFile(join(stage.folder, "proxy.pem"), certificate);
  await writeFile(join(stage.folder, "proxy.key"), key);
});

describe("test/golden/generate/envoy", () => {
  it("holds whole Envoys", () => {
    expect(bootstraps.length).toBeGreaterThan(50);
  });

  it.concurrent.each(bootstraps)("%s is valid for Envoy itself", async (path) => {
    const configPath = join(stage.folder, path.replaceAll("/", "-"));
    const text = readFileSync(join(root, path), "utf8");
    await writeFile(configPath, text.replaceAll(policyFolder, stage.folder));
    const { exit, output } = await validateWithEnvoy(stage, ["--config-path", configPath]);
    expect(exit, output).toEqual({ code: 0 });
    expect(output).not.toMatch(/deprecated|unknown field/i);
  });
});

/** Where policies of the golden folders have their certificates. */
const policyFolder = "/etc/envoy";
