import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { defaultGenerateOptions } from "../../src/generate/base/generate-options.js";
import { renderDocument } from "../../src/generate/base/render.js";
import { generate } from "../../src/generate/generate.js";
import { policyOf } from "../support/generated.js";

/** Folders of `envoy/` whose Envoy is made from the policy beside it. */
const examples = ["admission", "control", "demo", "llm", "quotas", "three-layers", "waiting-room"];

describe("envoy/", () => {
  it.each(examples)("%s has the Envoy that headgate makes of its policy", (example) => {
    const folder = `envoy/${example}`;
    const text = readFileSync(`${folder}/policy.yaml`, "utf8");
    const policy = policyOf([{ file: "policy.yaml", text }]);
    const options = { ...defaultGenerateOptions, roles: ["edge"] as const };
    const { documents, problems } = generate({ target: "envoy", policy, options }, []);
    // The demo shows limits alone, of which a lint warns.
    expect(problems.filter(({ severity }) => severity === "error")).toEqual([]);
    expect(documents.map(({ path }) => path)).toEqual(["edge/envoy.yaml"]);
    for (const document of documents) {
      const made = renderDocument(document, { target: "envoy", policy });
      const path = `${folder}/${document.path}`;
      if (process.env["UPDATE_GOLDEN"] === "1") writeFileSync(path, made);
      expect(readFileSync(path, "utf8")).toBe(made);
    }
  });
});

describe("k8s/quotas/", () => {
  it.each(["istio", "gateway"] as const)("%s has what headgate makes of its policy", (target) => {
    const text = readFileSync("k8s/quotas/policy.yaml", "utf8");
    const policy = policyOf([{ file: "policy.yaml", text }]);
    const options = { ...defaultGenerateOptions, roles: ["edge"] as const };
    const { documents, problems } = generate({ target, policy, options }, []);
    expect(problems).toEqual([]);
    const folder = `k8s/quotas/${target}`;
    if (process.env["UPDATE_GOLDEN"] === "1") {
      rmSync(folder, { recursive: true, force: true });
      for (const document of documents) {
        const path = join(folder, document.path);
        mkdirSync(dirname(path), { recursive: true });
        writeFileSync(path, renderDocument(document, { target, policy }));
      }
    }
    const found = readdirSync(folder, { recursive: true, encoding: "utf8" });
    const files = found.filter((path) => statSync(join(folder, path)).isFile());
    expect(files.sort()).toEqual(documents.map(({ path }) => path).sort());
    for (const document of documents) {
      const kept = readFileSync(join(folder, document.path), "utf8");
      expect(renderDocument(document, { target, policy })).toBe(kept);
    }
  });
});
