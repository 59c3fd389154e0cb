import { writeFileSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { it } from "vitest";
import { defaultGenerateOptions } from "../../src/generate/base/generate-options.js";
import { renderDocument } from "../../src/generate/base/render.js";
import { envoyCheck } from "../../src/generate/check/check-documents.js";
import { generate } from "../../src/generate/generate.js";
import { policyOf } from "../support/generated.js";
import { readEnvoyApi } from "../support/envoy-api.js";
import { mkdtempSync } from "node:fs";
import { refusalsByEnvoy, writeCertificates } from "../support/envoy-validation.js";

const text = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: llm}
spec:
  services:
    - name: llm
      hosts: [llm.example]
      upstream: {address: 127.0.0.1, port: 8001}
    - name: cheap
      hosts: [cheap.example]
      upstream: {address: 127.0.0.1, port: 8002}
  proxies:
    headgate: {address: headgate.headgate.svc.cluster.local}
`;
it("x", async () => {
  const base = policyOf([{ file: "policy.yaml", text }]);
  const usage = { model: { kind: "body" }, source: { kind: "body", format: "auto", fields: {} }, declaredMax: { kind: "body" }, requestBytesMax: 1048576, estimate: { quantile: 0.9, initial: 1000 }, callMsMax: 1800000 } as const;
  const policy = { ...base, services: base.services.map((s) => s.name === "llm" ? { ...s, usage } : s),
   budgets: [{ name: "m", services: ["llm"], models: [], per: [{kind: "header", header: "x-team"}], unit: {kind: "tokens"}, amount: 10, overrides: [], period: {kind:"drain", periodUs: 60000000}, over: {kind: "fallback", to: {kind: "cluster", cluster: "cheap"}}, warnAt: 0.8, warnHeaders: [{name: "x-headgate-budget-warning", value: "m"}], onStoreFailure: "local", whenLost: "release", isDryRun: false}] } as any;
  const folder = mkdtempSync("/tmp/bg/c-");
  for (const target of ["envoy", "istio", "gateway"] as const) {
    const { documents, problems } = generate({ target, policy, options: { ...defaultGenerateOptions, roles: ["edge"] } }, [envoyCheck(readEnvoyApi())]);
    console.log(target, problems);
    for (const d of documents) { const p = "/tmp/bg/" + target + "/" + d.path; mkdirSync(dirname(p), { recursive: true }); writeFileSync(p, renderDocument(d, { target, policy })); }
    if (target === "envoy") console.log(await refusalsByEnvoy(documents, writeCertificates(folder)));
  }
}, 60000);
