import { describe, expect, it } from "vitest";
import {
  clusterSeedsMax,
  parseClusterTarget,
  parseRedisTarget,
  parseSentinelTarget,
  type RedisTargetText,
  redactClusterTarget,
  redactRedisTarget,
  redactSentinelTarget,
  type SentinelTargetText,
  sentinelsMax,
} from "../../../../src/store/redis/target.js";

/** A target in one line, for tables: `tls user:password@host:port/database`. */
function described(text: RedisTargetText): string {
  const parsed = parseRedisTarget(text);
  if (parsed.kind === "problem") return `problem: ${parsed.message}`;
  const { address, username = "", password = "", database } = parsed.target;
  const place =
    address.kind === "unix"
      ? `unix ${address.path}`
      : `${address.isTls ? "tls" : "tcp"} ${address.host} ${address.port}`;
  return `${place} /${database} user=${username} password=${password}`;
}

describe("parseRedisTarget()", () => {
  it.each<[RedisTargetText, string]>([
    [{ url: "cache" }, "tcp cache 6379 /0 user= password="],
    [{ url: " cache:6380 " }, "tcp cache 6380 /0 user= password="],
    [{ url: "127.0.0.1:6379" }, "tcp 127.0.0.1 6379 /0 user= password="],
    [{ url: "[::1]:7000" }, "tcp ::1 7000 /0 user= password="],
    [{ url: "redis://cache" }, "tcp cache 6379 /0 user= password="],
    [{ url: "REDIS://cache/2" }, "tcp cache 6379 /2 user= password="],
    [{ url: "redis://cache:1/" }, "tcp cache 1 /0 user= password="],
    [{ url: "rediss://cache:6380/1" }, "tls cache 6380 /1 user= password="],
    [{ url: "cache:6379", socketType: "tls" }, "tls cache 6379 /0 user= password="],
    [{ url: "redis://me:pw@cache" }, "tcp cache 6379 /0 user=me password=pw"],
    [{ url: "redis://:pw@cache" }, "tcp cache 6379 /0 user= password=pw"],
    [{ url: "redis://pw@cache" }, "tcp cache 6379 /0 user= password=pw"],
    [{ url: "redis://me:@cache" }, "tcp cache 6379 /0 user= password="],
    [{ url: "redis://me:p@ss@cache:1" }, "tcp cache 1 /0 user=me password=p@ss"],
    [{ url: "redis://me:a/b?c#d:e@cache" }, "tcp cache 6379 /0 user=me password=a/b?c#d:e"],
    [{ url: "redis://me:p%40ss@cache" }, "tcp cache 6379 /0 user=me password=p@ss"],
    [{ url: "redis://me:100%@cache" }, "tcp cache 6379 /0 user=me password=100%"],
    [{ url: "me:pw@cache:1" }, "tcp cache 1 /0 user=me password=pw"],
    [{ url: "cache", auth: "pw" }, "tcp cache 6379 /0 user= password=pw"],
    [{ url: "cache", auth: "me:p:w" }, "tcp cache 6379 /0 user=me password=p:w"],
    [{ url: "cache", auth: ":pw%41" }, "tcp cache 6379 /0 user= password=pw%41"],
    [{ url: "redis://a:b@cache", auth: "me:pw" }, "tcp cache 6379 /0 user=me password=pw"],
    [{ url: "/run/redis.sock" }, "unix /run/redis.sock /0 user= password="],
    [{ url: "/run/redis.sock", socketType: "unix" }, "unix /run/redis.sock /0 user= password="],
    [{ url: "unix:///run/redis.sock", auth: "pw" }, "unix /run/redis.sock /0 user= password=pw"],
  ])("reads %j", (text, expected) => {
    expect(described(text)).toBe(expected);
  });

  it.each<[RedisTargetText, string]>([
    [{ url: "" }, "host:port"],
    [{ url: "http://cache" }, "scheme"],
    [{ url: "cache:port" }, "host:port"],
    [{ url: "cache:0" }, "1 to 65535"],
    [{ url: "cache:65536" }, "1 to 65535"],
    [{ url: "redis://cache/db" }, "host:port"],
    [{ url: "redis://cache/0?timeout=1" }, "host:port"],
    [{ url: "::1" }, "host:port"],
    [{ url: "a:1,b:2" }, "several servers"],
    [{ url: "cache", socketType: "unix" }, "must be absolute"],
    [{ url: "unix://run/redis.sock" }, "must be absolute"],
    [{ url: "/run/redis.sock", socketType: "tcp" }, "socket type must be unix"],
    [{ url: "redis://me:hunter2@cache:x" }, "host:port"],
  ])("says what is wrong with %j without repeating it", (text, part) => {
    const reported = described(text);
    expect(reported).toMatch(/^problem: /);
    expect(reported).toContain(part);
    expect(reported).not.toContain("hunter2");
  });
});

describe("redactRedisTarget()", () => {
  it.each([
    ["redis://me:hunter2@cache:1/2", "redis://cache:1/2"],
    ["rediss://:hunter2@[::1]:1", "rediss://[::1]:1/0"],
    ["hunter2@/run/redis.sock", "unix:///run/redis.sock"],
  ])("shows %s as its address alone", (url, shown) => {
    const parsed = parseRedisTarget({ url });
    expect(parsed.kind === "target" && redactRedisTarget(parsed.target)).toBe(shown);
  });
});

describe("parseClusterTarget()", () => {
  it("takes some of the nodes, and what holds for all of them from before the first", () => {
    const url = " rediss://me:p,w@a:1, b , [::1]:3 ";
    expect(parseClusterTarget({ url })).toEqual({
      kind: "target",
      target: {
        nodes: [
          { host: "a", port: 1 },
          { host: "b", port: 6379 },
          { host: "::1", port: 3 },
        ],
        username: "me",
        password: "p,w",
        isTls: true,
      },
    });
    expect(parseClusterTarget({ url: "me:no@a", auth: "you:yes" })).toMatchObject({
      target: { username: "you", password: "yes", isTls: false },
    });
  });

  it.each<[RedisTargetText, string]>([
    [{ url: "" }, "host:port"],
    [{ url: "a:1,,b:2" }, "host:port"],
    [{ url: "a:1,hunter2:x" }, "host:port"],
    [{ url: "a:1/1" }, "database 0"],
    [{ url: "unix:///run/redis.sock" }, "TCP"],
    [{ url: "/run/redis.sock" }, "TCP"],
    [{ url: "a:1", socketType: "unix" }, "TCP"],
    [{ url: "http://a:1" }, "scheme"],
    [
      {
        url: Array(clusterSeedsMax + 1)
          .fill("a:1")
          .join(),
      },
      "at most 64",
    ],
  ])("says what is wrong with %j without repeating it", (text, part) => {
    const parsed = parseClusterTarget(text);
    expect(parsed).toMatchObject({ kind: "problem", message: expect.stringContaining(part) });
    expect(JSON.stringify(parsed)).not.toContain("hunter2");
  });

  it("takes as many nodes as it says", () => {
    const url = Array(clusterSeedsMax).fill("a:1").join();
    expect(parseClusterTarget({ url }).kind).toBe("target");
  });
});

describe("redactClusterTarget()", () => {
  it("shows the addresses alone", () => {
    const nodes = [
      { host: "a", port: 1 },
      { host: "::1", port: 2 },
    ];
    const target = { nodes, username: "me", password: "hunter2", isTls: true };
    expect(redactClusterTarget(target)).toBe("rediss://a:1,[::1]:2");
  });
});

describe("parseSentinelTarget()", () => {
  it("takes the primary's name and the sentinels behind it, with a login for each kind", () => {
    const url = " rediss://me:p,w@gate-1.limits , a:1,b, [::1]:3 ";
    expect(parseSentinelTarget({ url, sentinelAuth: "s:t" })).toEqual({
      kind: "target",
      target: {
        primaryName: "gate-1.limits",
        sentinels: [
          { host: "a", port: 1 },
          { host: "b", port: 26_379 },
          { host: "::1", port: 3 },
        ],
        username: "me",
        password: "p,w",
        database: 0,
        sentinelLogin: { username: "s", password: "t" },
        isTls: true,
      },
    });
    expect(parseSentinelTarget({ url: "me:no@gate,a", auth: "yes" })).toMatchObject({
      target: { password: "yes", sentinelLogin: {}, isTls: false },
    });
  });

  it.each<[SentinelTargetText, string]>([
    [{ url: "" }, "primary's name"],
    [{ url: "gate" }, "primary's name"],
    [{ url: "a:1,b:2" }, "primary's name"],
    [{ url: "ga te,b:2" }, "primary's name"],
    [{ url: "gate,b:hunter2" }, "host:port"],
    [{ url: "gate,b:1/1" }, "host:port"],
    [{ url: "gate,," }, "host:port"],
    [{ url: "unix:///run/redis.sock" }, "TCP"],
    [{ url: "gate,b:2", socketType: "unix" }, "TCP"],
    [{ url: "http://gate,b:2" }, "scheme"],
    [
      {
        url: `gate,${Array(sentinelsMax + 1)
          .fill("b:2")
          .join()}`,
      },
      "at most 16",
    ],
  ])("says what is wrong with %j without repeating it", (text, part) => {
    const parsed = parseSentinelTarget(text);
    expect(parsed).toMatchObject({ kind: "problem", message: expect.stringContaining(part) });
    expect(JSON.stringify(parsed)).not.toContain("hunter2");
  });

  it("takes as many sentinels as it says", () => {
    const url = `gate,${Array(sentinelsMax).fill("b:2").join()}`;
    expect(parseSentinelTarget({ url }).kind).toBe("target");
  });
});

describe("redactSentinelTarget()", () => {
  it("shows the name and the addresses alone", () => {
    const url = "rediss://me:hunter2@gate,a:1,[::1]:2";
    const parsed = parseSentinelTarget({ url, sentinelAuth: "hunter3" });
    expect(parsed.kind === "target" && redactSentinelTarget(parsed.target)).toBe(
      "rediss://gate,a:1,[::1]:2",
    );
  });
});
