import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createLogger } from "../../../../src/app/base/logger.js";

let folder: string;
let fd: number;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "headgate-log-"));
  fd = openSync(join(folder, "log"), "w");
});

afterEach(() => {
  closeSync(fd);
  rmSync(folder, { recursive: true });
});

function written(): string {
  return readFileSync(join(folder, "log"), "utf8");
}

describe("createLogger()", () => {
  it("writes an object a line, with the event's name and the level's word", async () => {
    const logger = await createLogger(
      { logLevel: "info", logFormat: "json" },
      { fd, isTerminal: false },
    );
    logger.info({ event: "policyLoaded", version: "v1" }, "A policy.");
    const line: unknown = JSON.parse(written());
    expect(line).toMatchObject({
      level: "info",
      event: "policyLoaded",
      version: "v1",
      "@message": "A policy.",
      "@timestamp": expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
    });
  });

  it.each([
    { logLevel: "warning", levels: ["warn", "error"] },
    { logLevel: "debug", levels: ["debug", "info", "warn", "error"] },
    { logLevel: "panic", levels: [] },
  ] as const)("writes $levels at level $logLevel", async ({ logLevel, levels }) => {
    const logger = await createLogger({ logLevel, logFormat: "json" }, { fd, isTerminal: false });
    for (const level of ["debug", "info", "warn", "error"] as const) {
      logger[level]({ event: level }, level);
    }
    const found = written().split("\n").filter(Boolean);
    expect(found.map((line) => JSON.parse(line).level)).toEqual(levels);
  });

  it("writes text for people when asked to", async () => {
    const logger = await createLogger(
      { logLevel: "info", logFormat: "text" },
      { fd, isTerminal: false },
    );
    logger.info({ event: "serving", port: 8081 }, "Serving.");
    expect(written()).toMatch(/^\[.*\] INFO: Serving\. \{"port":8081\}\n$/);
  });

  it.each([true, false])("chooses by the terminal (%s) when it may", async (isTerminal) => {
    const logger = await createLogger({ logLevel: "info", logFormat: "auto" }, { fd, isTerminal });
    logger.info({ event: "serving" }, "Serving.");
    expect(written().startsWith("{")).toBe(!isTerminal);
  });

  it("blanks what must never be written", async () => {
    const logger = await createLogger(
      { logLevel: "info", logFormat: "json" },
      { fd, isTerminal: false },
    );
    logger.info({ event: "x", password: "secret-73", target: { auth: "secret-73" } }, "x");
    expect(written()).not.toContain("secret-73");
  });
});
