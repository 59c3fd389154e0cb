import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { startAdminApp } from "../support/admin.js";
import { markedBlock } from "../support/docs.js";
import { useStage } from "../support/stage.js";

const stage = useStage("test");

const policy = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  rateLimits:
    - {domain: shop, descriptors: [{key: user, rate_limit: {unit: minute, requests_per_unit: 2}}]}
`;

describe("the admin API in the documentation", () => {
  it("shows a call that is answered", async () => {
    const command = markedBlock("admin-call");
    expect(command).toContain("127.0.0.1:8082");
    const { port } = await startAdminApp(stage, policy);
    const here = command.replace("127.0.0.1:8082", `127.0.0.1:${port}`);
    const { stdout } = await promisify(execFile)("bash", ["-c", here]);
    const { current } = JSON.parse(stdout);
    expect(current).toMatchObject({ isDomainKnown: true, descriptors: [{ matchedLabel: "user" }] });
  });
});
