import { describe, expect, it } from "vitest";
import { loadConfig } from "../../../../src/app/config/config.js";
import { ignoredNotices, ignoredOptionRows } from "../../../../src/app/options/ignored-options.js";
import { optionNames, optionRow } from "../../../../src/app/options/options.js";

const names = ignoredOptionRows.flatMap((row) => row.names);

describe("ignoredOptionRows", () => {
  it("names nothing twice, and nothing that is an option", () => {
    const options = optionNames.map((name) => optionRow(name).env);
    expect(new Set([...names, ...options]).size).toBe(names.length + options.length);
  });

  it("gives each reason as a clause", () => {
    for (const { reason } of ignoredOptionRows) expect(reason).toMatch(/^[a-z`].*[^.]$/);
  });
});

describe("ignoredNotices()", () => {
  it("tells of the names that are set, once a reason, and of no value", () => {
    const env = { REDIS_POOL_SIZE: "hunter2", REDIS_PERSECOND_POOL_SIZE: "", REDIS_URL: "a" };
    const [notice, ...others] = ignoredNotices(env);
    expect(notice).toMatch(/^REDIS_POOL_SIZE, REDIS_PERSECOND_POOL_SIZE are accepted and without/);
    expect(notice).not.toContain("hunter2");
    expect(others).toEqual([]);
  });

  it("says nothing where none is set", () => {
    expect(ignoredNotices({ PATH: "/bin" })).toEqual([]);
  });

  it("is part of what the configuration tells, and no value is refused", () => {
    const env = Object.fromEntries(names.map((name) => [name, "whatever"]));
    const loaded = loadConfig({ flags: {}, env });
    expect(loaded.kind === "config" && loaded.config.notices).toEqual(ignoredNotices(env));
    expect(ignoredNotices(env)).toHaveLength(ignoredOptionRows.length);
  });
});
