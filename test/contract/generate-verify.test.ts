import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { runCli } from "../../src/cli/program.js";
import { requireProgram } from "../support/programs.js";

let folder = "";
let policy = "";
let out = "";

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "headgate-generate-verify-"));
  policy = join(folder, "policy.yaml");
  out = join(folder, "out");
  const service = "{name: orders, upstream: {address: 10.0.0.1, port: 80}}";
  const head = "apiVersion: headgate.dev/v1alpha1\nkind: Policy\nmetadata: {name: shop}\n";
  writeFileSync(policy, `${head}spec:\n  services: [${service}]\n`);
});

afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

/** Generates with `--verify`, and tells how it ended and what was complained of. */
async function verify(envoy: string, ...flags: readonly string[]) {
  vi.stubEnv("ENVOY_BIN", envoy);
  let err = "";
  const output = {
    out: () => {},
    err: (text: string) => {
      err += `${text}\n`;
    },
  };
  const words = ["generate", "envoy", policy, "--out", out, "--verify", ...flags];
  const code = await runCli(words, output);
  return { code, err, isWritten: existsSync(out) };
}

/** A program in Envoy's place that says its version, and otherwise does as the line says. */
function standIn(line: string): string {
  const path = join(folder, "envoy");
  const version = "envoy  version: 0123abcd/1.40.0/Clean/RELEASE/BoringSSL";
  const lines = ["#!/bin/sh", `[ "$1" = --version ] && echo "${version}" && exit 0`, line];
  writeFileSync(path, `${lines.join("\n")}\n`);
  chmodSync(path, 0o755);
  return path;
}

describe("headgate generate --verify", () => {
  it("has the real Envoy look at each whole configuration, and writes them", async () => {
    expect(await verify(await requireProgram("envoy"))).toEqual({
      code: 0,
      err: expect.stringMatching(/Verified by Envoy 1\.\d+\.\d+: 2 configurations\./),
      isWritten: true,
    });
  });

  it("writes nothing where Envoy refuses, and says what Envoy said without our path", async () => {
    const { code, err, isWritten } = await verify(standIn('echo "bad field in $4" >&2; exit 1'));
    expect({ code, isWritten }).toEqual({ code: 3, isWritten: false });
    expect(err).toMatch(/Envoy 1\.40\.0 rejects it: exit code 1: bad field in it/);
    expect(err).toMatch(/Nothing was written\./);
    expect(err).not.toContain("headgate-verify-");
  });

  it("fails where there is no Envoy, says how to get one, and writes nothing", async () => {
    const { code, err, isWritten } = await verify(join(folder, "nothing"));
    expect({ code, isWritten }).toEqual({ code: 1, isWritten: false });
    expect(err).toMatch(/^Not verified: .+ run `headgate demo` once .+ leave out --verify\./m);
  });

  it("fails where fragments are all there is: Envoy validates whole configurations", async () => {
    const envoy = await requireProgram("envoy");
    const { code, err, isWritten } = await verify(envoy, "--form", "fragments");
    expect({ code, isWritten }).toEqual({ code: 1, isWritten: false });
    expect(err).toMatch(/^Not verified: there is no complete configuration\. .+--form bootstrap/m);
  });
});
