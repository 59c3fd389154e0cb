import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Config, loadConfig, secretFileBytesMax } from "../../../../src/app/config/config.js";
import { optionFlag } from "../../../../src/app/options/option.js";
import { optionNames, optionRow } from "../../../../src/app/options/options.js";
import { leaseMsMax } from "../../../../src/store/coordination/budget-store.js";

type Env = Readonly<Record<string, string>>;

function problemsOf(env: Env, flags = {}): readonly string[] {
  const loaded = loadConfig({ flags, env });
  return loaded.kind === "problems" ? loaded.problems : [];
}

function configOf(env: Env, flags = {}): Config {
  const loaded = loadConfig({ flags, env });
  if (loaded.kind === "problems") throw new Error(loaded.problems.join("\n"));
  return loaded.config;
}

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "headgate-config-"));
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

function secretFile(text: string): string {
  const path = join(folder, "secret");
  writeFileSync(path, text);
  return path;
}

describe("optionRows", () => {
  it("has distinct names, and flags for everything but secrets", () => {
    const rows = optionNames.map(optionRow);
    expect(new Set(rows.map(({ env }) => env)).size).toBe(rows.length);
    const flags = rows.flatMap((row) => optionFlag(row) ?? []);
    expect(new Set(flags).size).toBe(flags.length);
    for (const row of rows) expect(optionFlag(row) === undefined).toBe(row.isSecret === true);
  });

  it("shows each default as text that parses back to it", () => {
    for (const name of optionNames) {
      const { defaultText, defaultValue, parse } = optionRow(name);
      if (defaultText === undefined) expect(defaultValue).toBeUndefined();
      else expect(parse(defaultText)).toEqual({ kind: "value", value: defaultValue });
    }
  });
});

describe("loadConfig()", () => {
  it("has defaults that start a single replica: all interfaces, the embedded store", () => {
    expect(configOf({})).toMatchObject({
      host: "0.0.0.0",
      port: 8080,
      grpcHost: "0.0.0.0",
      grpcPort: 8081,
      debugHost: "127.0.0.1",
      store: { kind: "memory" },
      policyPath: "/srv/runtime_data/current/config",
      storeBudgetMs: 10,
      replicas: 1,
      notices: [],
    });
  });

  it("takes flags before the environment, and the environment before defaults", () => {
    expect(configOf({ GRPC_PORT: "1" }, { grpcPort: "2" }).grpcPort).toBe(2);
    expect(configOf({ GRPC_PORT: "1" }).grpcPort).toBe(1);
  });

  it("reports all problems at once and echoes no value", () => {
    const problems = problemsOf(
      {
        PORT: "eighty-73",
        GRPC_PORT: "65536",
        BACKEND_TYPE: "memcache",
        HEADGATE_JSON: "perhaps-73",
        GRPC_MAX_CONNECTION_AGE: "1 day-73",
        HEADGATE_POLICI: "x-73",
      },
      { logLevel: "loud-73" },
    );
    expect(problems).toEqual([
      "PORT must be a whole number from 0 to 65535",
      "HEADGATE_JSON must be true or false",
      "GRPC_PORT must be a whole number from 0 to 65535",
      expect.stringContaining("GRPC_MAX_CONNECTION_AGE must be a time"),
      expect.stringMatching(/^BACKEND_TYPE is memcache, .* \(BACKEND_TYPE=redis, REDIS_URL=/),
      expect.stringContaining("--log-level must be one of"),
      "HEADGATE_POLICI is not a setting; did you mean HEADGATE_POLICY?",
    ]);
    expect(problems.join()).not.toContain("-73");
  });

  it.each([
    ["HEADGATE_STORE_BUDGET", "did you mean HEADGATE_STORE_BUDGET_MS?"],
    ["HEADGATE_REPLICA", "did you mean HEADGATE_REPLICAS?"],
    ["HEADGATE_QQQQQQQQQQQQQQQQQ", "see `headgate serve --help`"],
  ])("refuses the unknown name %s: %s", (name, hint) => {
    expect(problemsOf({ [name]: "1" })).toEqual([`${name} is not a setting; ${hint}`]);
  });

  it("refuses a lease of budgets that no store takes", () => {
    expect(problemsOf({ HEADGATE_BUDGET_LEASE_MS: String(leaseMsMax) })).toEqual([]);
    expect(problemsOf({ HEADGATE_BUDGET_LEASE_MS: String(leaseMsMax + 1) })).toHaveLength(1);
  });

  it.each([
    "REDIS_POOL_SIZE",
    "PATH",
    // What Kubernetes sets for Services called headgate and headgate-redis.
    "HEADGATE_SERVICE_HOST",
    "HEADGATE_SERVICE_PORT",
    "HEADGATE_SERVICE_PORT_GRPC",
    "HEADGATE_PORT",
    "HEADGATE_PORT_8081_TCP",
    "HEADGATE_PORT_8081_TCP_PROTO",
    "HEADGATE_REDIS_SERVICE_HOST",
    "HEADGATE_REDIS_PORT_6379_TCP_ADDR",
  ])("leaves %s alone", (name) => {
    expect(problemsOf({ [name]: "tcp://10.0.0.1:8081" })).toEqual([]);
  });

  it.each([
    [{}, "/srv/runtime_data/current/config"],
    [{ RUNTIME_ROOT: "/data", RUNTIME_SUBDIRECTORY: "ratelimit" }, "/data/ratelimit/config"],
    [{ RUNTIME_ROOT: "/data", RUNTIME_APPDIRECTORY: "limits" }, "/data/limits"],
    [{ RUNTIME_ROOT: "/data", HEADGATE_POLICY: "p.yaml" }, "p.yaml"],
    [{ HEADGATE_POLICY: "", RUNTIME_ROOT: "/data" }, "/data/config"],
  ])("finds the policy with %o in %s", (env, path) => {
    expect(configOf(env).policyPath).toBe(path);
  });

  it("watches the root's own directory unless told not to", () => {
    const env = { RUNTIME_ROOT: "/data/current" };
    expect(configOf(env).watchedDirectories).toContain("/data");
    expect(configOf({ ...env, RUNTIME_WATCH_ROOT: "false" }).watchedDirectories).toEqual([]);
    expect(configOf({ ...env, HEADGATE_POLICY: "p.yaml" }).watchedDirectories).toEqual([]);
  });

  it("reads the runtime's files as envoyproxy/ratelimit does, and others by their ending", () => {
    expect(configOf({}).policyStyle).toBe("allFiles");
    expect(configOf({ RUNTIME_IGNOREDOTFILES: "true" }).policyStyle).toBe("allButDotFiles");
    expect(configOf({ HEADGATE_POLICY: "directory" }).policyStyle).toBe("yamlFiles");
  });

  it.each([
    ["500ms", 500],
    ["24h", 86_400_000],
    ["1h30m", 5_400_000],
    ["0", 0],
  ])("reads the time %s as %i ms", (text, ms) => {
    expect(configOf({ GRPC_MAX_CONNECTION_AGE: text }).grpcConnectionAgeMsMax).toBe(ms);
  });

  it("keeps the debug port on this machine unless told otherwise", () => {
    expect(configOf({})).toMatchObject({ debugHost: "127.0.0.1", debugPort: 6070 });
    const env = { DEBUG_PORT: "6071", DEBUG_HOST: "0.0.0.0" };
    expect(configOf(env)).toMatchObject({ debugHost: "0.0.0.0", debugPort: 6071, notices: [] });
  });
});

describe("the store's settings", () => {
  it.each([
    { env: {}, kind: "memory" },
    { env: { REDIS_URL: "redis:6379" }, kind: "redis" },
    { env: { REDIS_URL: "" }, kind: "memory" },
    { env: { BACKEND_TYPE: "redis", REDIS_URL: "redis:6379" }, kind: "redis" },
    { env: { BACKEND_TYPE: "memory", REDIS_URL: "redis:6379" }, kind: "memory" },
  ])("choose $kind with $env", ({ env, kind }) => {
    expect(configOf(env).store.kind).toBe(kind);
  });

  it("ask for an address where Redis is wanted", () => {
    expect(problemsOf({ BACKEND_TYPE: "redis" })).toEqual([
      "BACKEND_TYPE is redis, but REDIS_URL is not set; set it to host:port",
    ]);
  });

  it("pass the address and credentials on, and turn on TLS", () => {
    const { store } = configOf({
      REDIS_URL: "cache:6380",
      REDIS_AUTH: "me:secret",
      REDIS_TLS: "true",
    });
    expect(store).toMatchObject({
      main: {
        kind: "single",
        target: {
          address: { kind: "tcp", host: "cache", port: 6380, isTls: true },
          username: "me",
          password: "secret",
        },
      },
    });
    expect(store).not.toHaveProperty("perSecond");
  });

  it("never echo a bad address", () => {
    const problems = problemsOf({ REDIS_URL: "http://user:secret-73@cache" });
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain("REDIS_URL: ");
    expect(problems[0]).not.toContain("secret-73");
  });
});

describe("a cluster's settings", () => {
  it("name some of its nodes", () => {
    const { store } = configOf({
      REDIS_TYPE: "CLUSTER",
      REDIS_URL: "a:1,b:2",
      REDIS_AUTH: "secret",
      REDIS_SOCKET_TYPE: "tls",
    });
    const nodes = [
      { host: "a", port: 1 },
      { host: "b", port: 2 },
    ];
    expect(store).toMatchObject({
      main: { kind: "cluster", target: { nodes, password: "secret", isTls: true } },
    });
  });

  it.each([
    [{ REDIS_TYPE: "cluster", REDIS_URL: "a:1,b:x" }, "REDIS_URL: must be a list of host:port"],
    [{ REDIS_URL: "a:1,b:2" }, "REDIS_URL: contains several servers"],
    [
      { REDIS_TYPE: "cluster", CACHE_KEY_PREFIX: "a{}" },
      "CACHE_KEY_PREFIX must not contain braces",
    ],
    [{ HEADGATE_REDIS_CLUSTER_TAGS: "1025" }, "HEADGATE_REDIS_CLUSTER_TAGS must be"],
  ])("refuse %j", (env, message) => {
    const problems = problemsOf({ REDIS_URL: "a:1", ...env });
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(message);
  });
});

describe("the settings of sentinels", () => {
  it("name the primary, the sentinels, and a password for each", () => {
    const { store } = configOf({
      REDIS_TYPE: "Sentinel",
      REDIS_URL: "gate,a:1,b",
      REDIS_AUTH: "me:secret",
      REDIS_SENTINEL_AUTH: "watch",
      REDIS_TLS: "true",
    });
    expect(store).toMatchObject({
      main: {
        kind: "sentinel",
        target: {
          primaryName: "gate",
          sentinels: [
            { host: "a", port: 1 },
            { host: "b", port: 26_379 },
          ],
          username: "me",
          password: "secret",
          sentinelLogin: { password: "watch" },
          isTls: true,
        },
      },
    });
  });

  it("leave no password in the configuration but in its target", () => {
    const { store: _, ...rest } = configOf({
      REDIS_URL: "a",
      REDIS_AUTH: "hunter2",
      REDIS_SENTINEL_AUTH: "hunter2",
      REDIS_PERSECOND_SENTINEL_AUTH: "hunter2",
    });
    expect(JSON.stringify(rest)).not.toContain("hunter2");
  });
});

describe("the settings of TLS with Redis", () => {
  const files = {
    REDIS_TLS_CACERT: "/ca",
    REDIS_TLS_CLIENT_CERT: "/c",
    REDIS_TLS_CLIENT_KEY: "/k",
  };

  it("are the same for all servers", () => {
    const env = { REDIS_URL: "a", REDIS_TLS: "true", REDIS_TLS_SKIP_HOSTNAME_VERIFICATION: "1" };
    expect(configOf({ ...env, ...files })).toMatchObject({
      store: {
        tls: {
          authorityPath: "/ca",
          pair: { certificatePath: "/c", keyPath: "/k" },
          skipsHostName: true,
        },
      },
      notices: [],
    });
  });

  it.each(["REDIS_TLS_CLIENT_CERT", "REDIS_TLS_CLIENT_KEY"])("refuse %s alone", (name) => {
    expect(problemsOf({ REDIS_URL: "a", [name]: "/x" })).toEqual([
      "REDIS_TLS_CLIENT_CERT and REDIS_TLS_CLIENT_KEY need each other; set both",
    ]);
  });

  it.each([
    { REDIS_URL: "a" },
    { REDIS_URL: "/run/redis.sock" },
    { REDIS_URL: "a,b", REDIS_TYPE: "cluster" },
    {},
  ])("are told to be idle with %j", (env) => {
    expect(configOf({ ...env, ...files }).notices).toEqual([
      "REDIS_TLS_ names are set, but no Redis is reached over TLS; set REDIS_TLS to true.",
    ]);
  });

  it.each([
    { REDIS_URL: "rediss://a" },
    { REDIS_URL: "a,b:1", REDIS_TYPE: "sentinel", REDIS_SOCKET_TYPE: "tls" },
    {
      REDIS_URL: "a",
      REDIS_PERSECOND: "true",
      REDIS_PERSECOND_URL: "b",
      REDIS_PERSECOND_TLS: "true",
    },
  ])("are in use with %j", (env) => {
    expect(configOf({ ...env, ...files }).notices).toEqual([]);
  });
});

describe("the time-out of Redis", () => {
  it.each<[Env, number | undefined]>([
    [{}, 10_000],
    [{ REDIS_TIMEOUT: "5ms" }, 5],
    [{ REDIS_TIMEOUT: "0" }, undefined],
  ])("is with %j %s ms", (env, timeoutMs) => {
    const { store } = configOf({ REDIS_URL: "a", ...env });
    expect(store.kind === "redis" && store.main.timeoutMs).toBe(timeoutMs);
  });
});

describe("the second Redis's settings", () => {
  const perSecond = { REDIS_URL: "a", REDIS_PERSECOND: "true", REDIS_PERSECOND_URL: "b:2,c:3" };

  it("are its own", () => {
    const env = { ...perSecond, REDIS_PERSECOND_TYPE: "cluster", REDIS_PERSECOND_AUTH: "me:too" };
    expect(configOf({ ...env, REDIS_AUTH: "me:first", REDIS_PERSECOND_TLS: "1" })).toMatchObject({
      store: {
        main: { kind: "single", target: { password: "first" } },
        perSecond: {
          kind: "cluster",
          target: { nodes: [{ host: "b" }, { host: "c" }], password: "too", isTls: true },
        },
      },
    });
  });

  it("may name sentinels and a time-out of their own", () => {
    const env = { ...perSecond, REDIS_PERSECOND_TYPE: "sentinel", REDIS_PERSECOND_URL: "g,c:3" };
    const auth = { REDIS_PERSECOND_SENTINEL_AUTH: "watch", REDIS_PERSECOND_TIMEOUT: "7ms" };
    expect(configOf({ ...env, ...auth })).toMatchObject({
      store: {
        main: { kind: "single", timeoutMs: 10_000 },
        perSecond: {
          kind: "sentinel",
          target: { primaryName: "g", sentinelLogin: { password: "watch" } },
          timeoutMs: 7,
        },
      },
    });
  });

  it("say nothing while it is off", () => {
    expect(configOf({ ...perSecond, REDIS_PERSECOND: "false" }).store).not.toHaveProperty(
      "perSecond",
    );
  });

  it.each([
    [{ REDIS_PERSECOND_URL: "" }, "REDIS_PERSECOND_URL is not set"],
    [{ REDIS_URL: "" }, "REDIS_URL is not set"],
    [{}, "REDIS_PERSECOND_URL: contains several servers"],
    [{ REDIS_PERSECOND_TYPE: "sentinel" }, "REDIS_PERSECOND_URL: must be the primary's name"],
    [
      { REDIS_PERSECOND_TYPE: "cluster", CACHE_KEY_PREFIX: "{a}" },
      "CACHE_KEY_PREFIX must not contain braces",
    ],
  ])("refuse %j", (env, message) => {
    const problems = problemsOf({ ...perSecond, ...env });
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(message);
  });
});

describe("a secret's file", () => {
  it("gives the secret, without the newline at its end", () => {
    const env = { REDIS_URL: "cache", REDIS_AUTH_FILE: secretFile(" pass word \n") };
    expect(configOf(env).store).toMatchObject({
      main: { target: { password: " pass word " } },
    });
  });

  it("may hold the address too", () => {
    const env = { REDIS_URL_FILE: secretFile("rediss://:secret@cache:1\n") };
    expect(configOf(env).store).toMatchObject({ main: { target: { password: "secret" } } });
  });

  it("must be there", () => {
    expect(problemsOf({ REDIS_AUTH_FILE: join(folder, "none-73") })).toEqual([
      "REDIS_AUTH_FILE names a file that cannot be read: no such file or directory",
    ]);
  });

  it("excludes the secret itself", () => {
    expect(problemsOf({ REDIS_AUTH: "a", REDIS_AUTH_FILE: secretFile("b") })).toEqual([
      "REDIS_AUTH and REDIS_AUTH_FILE are both set; remove one",
    ]);
  });

  it(`holds at most ${secretFileBytesMax} bytes`, () => {
    const largest = { REDIS_URL: "c", REDIS_AUTH_FILE: secretFile("x".repeat(secretFileBytesMax)) };
    expect(problemsOf(largest)).toEqual([]);
    const larger = { REDIS_AUTH_FILE: secretFile("x".repeat(secretFileBytesMax + 1)) };
    expect(problemsOf(larger)).toEqual([
      `REDIS_AUTH_FILE names a file of more than ${secretFileBytesMax} bytes`,
    ]);
  });
});
