import { describe, expect, it } from "vitest";
import { type Config, loadConfig } from "../../../../src/app/config/config.js";
import { countRegions } from "../../../../src/app/options/region-options.js";
import { regionsMax } from "../../../../src/core/limits/lending.js";

type Env = Readonly<Record<string, string>>;

const stores = "us=redis-us:6379 eu=redis-eu:6379\nasia=redis-asia:6379";
const good: Env = {
  REDIS_URL: "localhost:6379",
  HEADGATE_REGION: "eu",
  HEADGATE_REGION_STORES: stores,
};

function load(env: Env) {
  return loadConfig({ flags: {}, env: { ...good, ...env } });
}

function problemsOf(env: Env): readonly string[] {
  const loaded = load(env);
  return loaded.kind === "problems" ? loaded.problems : [];
}

function configOf(env: Env): Config {
  const loaded = load(env);
  if (loaded.kind === "problems") throw new Error(loaded.problems.join("\n"));
  return loaded.config;
}

/** The stores of the other regions, by name. */
function peersOf(env: Env) {
  return Object.fromEntries(
    (configOf(env).regions?.peers ?? []).map(({ name, redis }) => [name, redis]),
  );
}

describe("the settings of regions", () => {
  it("name this region, and the stores of the others, whatever their order", () => {
    const { regions } = configOf({});
    expect(regions?.own).toBe("eu");
    expect(regions?.names).toEqual(["asia", "eu", "us"]);
    expect(regions?.peers.map(({ name, redis }) => [name, redis])).toEqual([
      ["asia", expect.objectContaining({ kind: "single", timeoutMs: 10_000 })],
      ["us", expect.objectContaining({ kind: "single", timeoutMs: 10_000 })],
    ]);
  });

  it("may be left out", () => {
    expect(loadConfig({ flags: {}, env: { REDIS_URL: "a" } })).not.toHaveProperty("config.regions");
    expect(countRegions("")).toBe(1);
    expect(countRegions(stores)).toBe(3);
  });

  it("use TLS and the kind of server of REDIS_URL for every region", () => {
    const env = { REDIS_TLS: "true", REDIS_TYPE: "cluster" };
    const list = "us=a:1,b:2 eu=c:3";
    expect(peersOf({ ...env, HEADGATE_REGION_STORES: list })).toMatchObject({
      us: { kind: "cluster", target: { nodes: [{ host: "a" }, { host: "b" }], isTls: true } },
    });
  });

  it("use REDIS_AUTH for a region whose own URL has no password", () => {
    const list = "us=redis://us:own%20one@a:1 asia=rediss://b:1 eu=c:3";
    expect(peersOf({ REDIS_AUTH: "shared", HEADGATE_REGION_STORES: list })).toMatchObject({
      us: { target: { username: "us", password: "own one", address: { isTls: false } } },
      asia: { target: { password: "shared", address: { isTls: true } } },
    });
  });

  it("keep what is secret out of the rest of the configuration", () => {
    const list = "us=redis://:hush-1@a eu=redis://:hush-2@b";
    const { regions: _regions, ...rest } = configOf({ HEADGATE_REGION_STORES: list });
    expect(JSON.stringify(rest)).not.toContain("hush");
  });

  it("count as a use of the TLS files", () => {
    const tls = { REDIS_TLS_SKIP_HOSTNAME_VERIFICATION: "true" };
    expect(configOf(tls).notices).toHaveLength(1);
    const list = "us=rediss://a eu=b";
    expect(configOf({ ...tls, HEADGATE_REGION_STORES: list }).notices).toEqual([]);
  });

  it.each([
    [{ HEADGATE_REGION: "" }, "HEADGATE_REGION and HEADGATE_REGION_STORES need each other"],
    [{ HEADGATE_REGION_STORES: "" }, "HEADGATE_REGION and HEADGATE_REGION_STORES need each other"],
    [{ HEADGATE_REGION: "EU" }, "HEADGATE_REGION must be a region's name: lower-case letters"],
    [{ HEADGATE_REGION: "mars" }, "HEADGATE_REGION is none of the names"],
    [{ REDIS_URL: "" }, "set REDIS_URL to the Redis of this region"],
    [{ BACKEND_TYPE: "memory" }, "set REDIS_URL to the Redis of this region"],
    [{ REDIS_PERSECOND: "true", REDIS_PERSECOND_URL: "c" }, "set REDIS_PERSECOND to false"],
    [{ HEADGATE_REGION_STORES: "eu=a:1" }, `must have from 2 to ${regionsMax} entries`],
    [
      { HEADGATE_REGION_STORES: Array.from({ length: 17 }, (_, i) => `r${i}=h${i}`).join(" ") },
      `must have from 2 to ${regionsMax} entries`,
    ],
    [{ HEADGATE_REGION_STORES: "eu=a hush-7@b" }, "entry 2 must be name=url"],
    [{ HEADGATE_REGION_STORES: "eu=a us=http://hush-7@b" }, "entry 2: the scheme must be redis"],
    [{ HEADGATE_REGION_STORES: "eu=a us=b eu=hush-7@c" }, "entry 3 has the name of an entry"],
    [
      { HEADGATE_REGION_STORES: "eu=a us=b:1 asia=redis://hush-7@b:1" },
      "entries 2 and 3 name the same Redis",
    ],
    [
      { HEADGATE_REGION_STORES: "us=redis://:hush-7@localhost eu=b" },
      "entry 1 names the Redis at REDIS_URL",
    ],
  ])("refuse %j, and never echo it", (env, message) => {
    const problems = problemsOf(env);
    expect(problems).toEqual([expect.stringContaining(message)]);
    expect(problems[0]).not.toContain("hush");
  });

  it("allow this region's own entry to be the Redis at REDIS_URL", () => {
    const list = "eu=localhost:6379 us=b";
    expect(configOf({ HEADGATE_REGION_STORES: list }).regions?.names).toEqual(["eu", "us"]);
  });
});
