import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { runCli } from "../../src/cli/program.js";
import { type GeneratedLog, generatedCsv } from "../support/generated-log.js";

const root = "test/golden/recommend";

/** What each folder's policy is run with. */
const cases: Readonly<
  Record<string, { readonly log: GeneratedLog; readonly flags: readonly string[] }>
> = {
  week: {
    log: {
      seed: 7,
      days: 7,
      callers: 120,
      perDay: 3_000,
      zipf: 0.9,
      wild: { bursts: 2, size: 300 },
    },
    flags: [],
  },
  "new-limit": {
    log: { seed: 8, days: 2, callers: 50, perDay: 2_000, zipf: 0 },
    flags: ["--per", "user=@x-user", "--period", "10s", "--headroom", "1.5"],
  },
  "too-little": { log: { seed: 9, days: 1, callers: 9, perDay: 300, zipf: 0 }, flags: [] },
};

/** A folder `recommend/<case>` holds a policy, and what is printed and written of it. */
describe("headgate recommend", () => {
  it.each(Object.entries(cases))("says of %s what is expected", async (name, { log, flags }) => {
    const folder = `${root}/${name}`;
    const scratch = mkdtempSync(join(tmpdir(), "headgate-recommend-"));
    const csv = join(scratch, "access.csv");
    const files = { "expected.yaml": "new.yaml", "expected.html": "report.html" };
    writeFileSync(csv, generatedCsv(log));
    const written = ["--write", join(scratch, "new.yaml"), "--html", join(scratch, "report.html")];
    const run = async (...more: readonly string[]) => {
      let out = "";
      const output = {
        out: (text: string) => {
          out += `${text}\n`;
        },
        err: (text: string) => expect.fail(text),
      };
      const args = ["recommend", "--policy", `${folder}/policy.yaml`, "--show-keys", ...flags];
      return { code: await runCli([...args, ...more, csv], output), out };
    };
    const table = await run(...written);
    const made = new Map([["expected.txt", table.out]]);
    const isProposed = name !== "too-little";
    expect(table.code).toBe(isProposed ? 0 : 4);
    for (const [expected, file] of Object.entries(isProposed ? files : {})) {
      const text = readFileSync(join(scratch, file), "utf8");
      // Styles are those of all reports.
      made.set(expected, text.replace(/<style>[\s\S]*<\/style>/, ""));
    }
    if (isProposed) made.set("expected.json", (await run("-o", "json")).out);
    rmSync(scratch, { recursive: true });
    for (const [file, text] of made) {
      const path = `${folder}/${file}`;
      if (process.env["UPDATE_GOLDEN"] === "1") writeFileSync(path, text);
      expect(text, path).toBe(readFileSync(path, "utf8"));
    }
  });
});
