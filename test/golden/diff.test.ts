import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { runCli } from "../../src/cli/program.js";

const root = "test/golden/diff";

/** Each folder `diff/<case>` is two policies and what `headgate diff` says of them. */
describe("headgate diff", () => {
  it.each(readdirSync(root).sort())("says of %s what is expected", async (name) => {
    const folder = `${root}/${name}`;
    let said = "";
    const output = {
      out: (text: string) => {
        said += `${text}\n`;
      },
      err: (text: string) => expect.fail(text),
    };
    // A policy of several files is a folder.
    const ending = existsSync(`${folder}/old.yaml`) ? ".yaml" : "";
    const paths = ["old", "new"].map((one) => `${folder}/${one}${ending}`);
    const code = await runCli(["diff", ...paths], output);
    const path = `${folder}/expected.txt`;
    if (process.env["UPDATE_GOLDEN"] === "1") writeFileSync(path, said);
    expect(said).toBe(readFileSync(path, "utf8"));
    expect(code).toBe(said === "No changes.\n" ? 0 : 4);
  });
});
