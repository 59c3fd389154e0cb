import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { runCli } from "../../../../src/cli/program.js";
import { problemsMax } from "../../../../src/policy/problems/problem-log.js";
import { doctorBootstrap, doctorPolicyText } from "../../../support/doctor.js";
import { readEnvoyApi } from "../../../support/envoy-api.js";

let folder = "";
let file = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "headgate-check-"));
  file = join(folder, "envoy.yaml");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function check(...args: readonly string[]) {
  let [out, err] = ["", ""];
  const output = {
    out: (text: string) => {
      out += text;
    },
    err: (text: string) => {
      err += text;
    },
  };
  const environment = { envoyApi: readEnvoyApi() };
  return { code: await runCli(["check", "--envoy", ...args], output, environment), out, err };
}

/** An object of Envoy Gateway whose bootstrap is a text. */
function envoyProxyOf(text: string): string {
  return JSON.stringify({
    apiVersion: "gateway.envoyproxy.io/v1alpha1",
    kind: "EnvoyProxy",
    metadata: { name: "a" },
    spec: { bootstrap: { type: "Merge", value: text } },
  });
}

describe("headgate check --envoy", () => {
  it("says where a configuration is wrong, and what would be right", async () => {
    writeFileSync(file, "static_resources:\n  clusters:\n    - {name: a, conect_timeout: 1s}\n");
    const { code, out } = await check(file);
    expect(code).toBe(3);
    expect(out).toBe(
      [
        `${file}:3:33: error HG450 "conect_timeout" is not a field of ` +
          "envoy.config.cluster.v3.Cluster",
        "  at static_resources.clusters[0].conect_timeout",
        "  hint: did you mean connect_timeout",
        "",
        "1 error, 0 warnings.",
      ].join("\n"),
    );
    const json = await check("-o", "json", file);
    expect(json.code).toBe(3);
    expect(JSON.parse(json.out)).toMatchObject({
      ok: false,
      problems: [{ file, line: 3, column: 33, id: "HG450", severity: "error" }],
    });
  });

  it("lets warnings pass", async () => {
    writeFileSync(file, "static_resources: {clusters: [{name: a, circuit_breakers: {}}]}\n");
    const { code, out } = await check(file);
    expect({ code, out }).toEqual({ code: 0, out: expect.stringContaining("warning HG423") });
    writeFileSync(file, "static_resources: {clusters: [{name: a}]}\n");
    expect(await check(file)).toMatchObject({ code: 0, out: "OK: no problems." });
  });

  it.each(["node:\n", "static_resources:\n", "node: {id: }\n", "~\n"])(
    "takes %j, which holds nothing, for nothing",
    async (text) => {
      const fine = { code: 0, out: "OK: no problems.", err: "" };
      writeFileSync(file, text);
      expect(await check(file)).toEqual(fine);
      writeFileSync(file, envoyProxyOf(text));
      expect(await check(file)).toMatchObject({ code: 0, err: "" });
    },
  );

  it("tells an item of a list that holds nothing", async () => {
    for (const text of [
      "static_resources: {clusters: [~]}\n",
      "static_resources:\n  clusters:\n    -\n",
    ]) {
      writeFileSync(file, text);
      const { code, out } = await check(file);
      expect({ code, out }).toEqual({ code: 3, out: expect.stringContaining("clusters[0]") });
      writeFileSync(file, envoyProxyOf(text));
      expect(await check(file)).toMatchObject({ code: 3, err: "" });
    }
  });

  it("shows a bounded number of problems", async () => {
    const names = Array.from({ length: problemsMax + 5 }, (_, i) => `x${i}: 1\n`);
    writeFileSync(file, names.join(""));
    const { out } = await check(file);
    expect(out.match(/HG450/g)).toHaveLength(problemsMax);
    expect(out).toContain("and 5 more\n");
  });

  it("needs files that can be read, and no policy to compare with", async () => {
    expect(await check(join(folder, "none"))).toMatchObject({
      code: 1,
      err: expect.stringContaining("no such file"),
    });
    expect(await check()).toMatchObject({ code: 2, err: expect.stringContaining("needs files") });
    expect((await check(file, "--ratelimit", folder)).code).toBe(2);
  });

  describe("with --policy", () => {
    const bootstrap = JSON.stringify(doctorBootstrap());

    async function compare(text: string) {
      writeFileSync(file, text);
      const policy = join(folder, "policy.yaml");
      writeFileSync(policy, doctorPolicyText);
      return check(file, "--policy", policy);
    }

    it("finds nothing in what is generated of it", async () => {
      const { code, out, err } = await compare(bootstrap);
      expect({ code, err }).toEqual({ code: 0, err: "" });
      expect(out).toBe("OK: no problems.");
    });

    it.each([
      ["a domain that is wrong", /"domain":"shop"/g, '"domain":"shoop"', "HG506"],
      [
        "a filter that nothing is asked by",
        /"name":"envoy.filters.http.(ratelimit|ext_proc)[^"]*","typed_config"/g,
        '"name":"x","unknown"',
        "HG500",
      ],
      ["a timeout that is too short", /"timeout":"[\d.]+s"/g, '"timeout":"0.001s"', "HG523"],
    ])("finds %s, as doctor does", async (_, from, to, id) => {
      const broken = bootstrap.replace(from, to);
      expect(broken).not.toBe(bootstrap);
      const { out } = await compare(broken);
      expect(out).toContain(id);
      expect(out).not.toMatch(/: OK\b|^OK\b/m);
    });

    it("says that what is no bootstrap was not compared", async () => {
      const { err } = await compare("apiVersion: v1\nkind: ConfigMap\n");
      expect(err).toContain("is not a bootstrap");
    });

    it("says which fields Envoy's API gives up", async () => {
      writeFileSync(
        file,
        "static_resources: {clusters: [{name: a, http2_protocol_options: {}}]}\n",
      );
      const { code, out } = await check(file);
      expect(code).toBe(0);
      expect(out).toContain('warning HG457 "http2_protocol_options" is deprecated');
    });

    it("belongs to --envoy", async () => {
      const errors: string[] = [];
      const output = { out: () => {}, err: (text: string) => void errors.push(text) };
      expect(await runCli(["check", "--policy", "a.yaml", "b.yaml"], output)).toBe(2);
      expect(errors.join("")).toContain("--policy needs --envoy");
    });
  });
});
