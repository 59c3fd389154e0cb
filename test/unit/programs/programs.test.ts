import { describe, expect, it } from "vitest";
import { isAtLeast, parseVersion } from "../../../src/programs/programs.js";
import { type ToolName, tools } from "../../support/tools.js";

interface VersionCase {
  readonly program: ToolName;
  readonly text: string;
  readonly version: string | undefined;
}

const versionCases: readonly VersionCase[] = [
  {
    program: "envoy",
    text: "\nenvoy  version: 9e5580933739775e/1.40.0/Clean/RELEASE/BoringSSL\n",
    version: "1.40.0",
  },
  {
    program: "envoy",
    text: "/opt/envoy  version: 0f/1.41.0-dev/Modified/DEBUG/BoringSSL",
    version: "1.41.0",
  },
  { program: "envoy", text: "envoy 1.40.0", version: undefined },
  {
    program: "redis",
    text: "Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=ae4d",
    version: "7.0.15",
  },
  { program: "redis", text: "Valkey server v=9.1.2 sha=00000000:1", version: "9.1.2" },
  { program: "valkey", text: "Valkey server v=9.1.2 sha=00000000:1", version: "9.1.2" },
  { program: "valkey", text: "sh: 1: not found", version: undefined },
  { program: "valkey", text: "", version: undefined },
  { program: "helm", text: "v3.19.5+g0cd3d8c\n", version: "3.19.5" },
  { program: "helm", text: "v3.19\n", version: "3.19" },
  { program: "helm", text: "Error: unknown command", version: undefined },
  { program: "hadolint", text: "Haskell Dockerfile Linter 2.15.1", version: "2.15.1" },
  {
    program: "promtool",
    text: "promtool, version 2.42.0+ds (branch: debian/sid, revision: 2.42.0+ds-5)\n",
    version: "2.42.0",
  },
  {
    program: "chromium",
    text: "Chromium 156.0.8078.108 built on Debian GNU/Linux 12 (bookworm)",
    version: "156.0.8078",
  },
  { program: "chromium", text: "Google Chrome for Testing 140.0.7339.16", version: "140.0.7339" },
];

describe("parseVersion()", () => {
  it.each(versionCases)("reads $version as $program's from '$text'", (row) => {
    expect(parseVersion(tools[row.program], row.text)).toBe(row.version);
  });
});

describe("isAtLeast()", () => {
  it.each([
    ["1.40.0", "1.40.0", true],
    ["1.40.1", "1.40.0", true],
    ["1.41.0", "1.40.9", true],
    ["2.0.0", "1.40.0", true],
    ["3.19", "3.14.0", true],
    ["1.39.9", "1.40.0", false],
    ["1.9.0", "1.40.0", false],
    ["0.99.99", "1.0.0", false],
  ] as const)("says of %s against %s: %s", (version, wanted, expected) => {
    expect(isAtLeast(version, wanted)).toBe(expected);
  });
});
