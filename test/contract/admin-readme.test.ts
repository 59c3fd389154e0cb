import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { startAdminApp } from "../support/admin.js";
import { useStage } from "../support/stage.js";

const stage = useStage("test");

const policy = `apiVersion: headgate.dev/v1alpha1
kind: Policy
metadata: {name: shop}
spec:
  rateLimits:
    - {domain: shop, descriptors: [{key: user, rate_limit: {unit: minute, requests_per_unit: 2}}]}
`;

describe("the admin API's section in the README", () => {
  it("shows a call that is answered", async () => {
    const text = await readFile("README.md", "utf8");
    const [, section = ""] = text.split("## The admin API\n");
    const [, command = ""] = /```sh\n([\s\S]*?)```/.exec(section) ?? [];
    expect(command).toContain("127.0.0.1:8082");
    const { port } = await startAdminApp(stage, policy);
    const here = command.replace("127.0.0.1:8082", `127.0.0.1:${port}`);
    const { stdout } = await promisify(execFile)("bash", ["-c", here]);
    const { current } = JSON.parse(stdout);
    expect(current).toMatchObject({ isDomainKnown: true, descriptors: [{ matchedLabel: "user" }] });
  });
});
