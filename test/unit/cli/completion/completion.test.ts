import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { shells } from "../../../../src/cli/completion/completion-scripts.js";
import { runCli } from "../../../../src/cli/program.js";

const folder = mkdtempSync(join(tmpdir(), "headgate-completion-"));
afterAll(() => rmSync(folder, { recursive: true }));

async function scriptFor(shell: string): Promise<string> {
  let out = "";
  const take = (text: string): void => {
    out += text;
  };
  const code = await runCli(["completion", shell], { out: take, err: take });
  if (code !== 0) throw new Error(out);
  const path = join(folder, `headgate.${shell}`);
  writeFileSync(path, `${out}\n`);
  return path;
}

function isInstalled(shell: string): boolean {
  return spawnSync(shell, ["-c", "true"]).status === 0;
}

/** What bash would offer for the last of these words. */
async function bashOffers(...words: readonly string[]): Promise<readonly string[]> {
  const script = await scriptFor("bash");
  const program = [
    `source ${script}`,
    'COMP_WORDS=("$@")',
    "COMP_CWORD=$(($# - 1))",
    "_headgate_complete",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: bash's own expansion
    'printf "%s\\n" "${COMPREPLY[@]}"',
  ].join("\n");
  const ran = spawnSync("bash", ["-c", program, "bash", "headgate", ...words], {
    cwd: folder,
    encoding: "utf8",
  });
  expect(ran.stderr).toBe("");
  return ran.stdout.split("\n").filter((word) => word !== "");
}

describe("headgate completion bash", () => {
  it("offers commands, and of them those that begin so", async () => {
    expect(await bashOffers("")).toEqual(expect.arrayContaining(["check", "doctor", "keys"]));
    expect(await bashOffers("doc")).toEqual(["doctor"]);
  });

  it("offers a command's commands, and its options", async () => {
    expect(await bashOffers("keys", "")).toEqual(expect.arrayContaining(["get", "reset"]));
    expect(await bashOffers("doctor", "--wa")).toEqual(["--watch"]);
    expect(await bashOffers("help", "doc")).toEqual(["doctor"]);
  });

  it("offers choices where there are some, and nothing where anything may stand", async () => {
    expect(await bashOffers("doctor", "-o", "")).toEqual(["table", "json", "yaml"]);
    expect(await bashOffers("doctor", "--output", "j")).toEqual(["json"]);
    expect(await bashOffers("doctor", "--cluster", "")).toEqual([]);
    expect(await bashOffers("completion", "f")).toEqual(["fish"]);
  });

  it("offers files where a path is expected, also those with an option's name before", async () => {
    writeFileSync(join(folder, "policy.yaml"), "");
    expect(await bashOffers("check", "pol")).toEqual(["policy.yaml"]);
    expect(await bashOffers("doctor", "--policy", "pol")).toEqual(["policy.yaml"]);
  });
});

/** What fish would offer for this line, without what it says of each. */
async function fishOffers(line: string): Promise<readonly string[]> {
  const program = `source ${await scriptFor("fish")}; complete -C '${line}'`;
  const ran = spawnSync("fish", ["--no-config", "-c", program], { cwd: folder, encoding: "utf8" });
  expect(ran.stderr).toBe("");
  return ran.stdout.split("\n").flatMap((row) => (row === "" ? [] : [row.split("\t")[0] ?? ""]));
}

describe("headgate completion fish", () => {
  it("offers commands, options and choices, each in its place, where there is a fish", async () => {
    if (!isInstalled("fish")) return;
    expect(await fishOffers("headgate ")).toEqual(expect.arrayContaining(["check", "keys"]));
    expect(await fishOffers("headgate keys ov")).toEqual(["override", "overrides"]);
    expect(await fishOffers("headgate keys override --ti")).toEqual(["--times"]);
    expect(await fishOffers("headgate top --by shop -o j")).toEqual(["json"]);
    expect(await fishOffers("headgate help doc")).toEqual(["doctor"]);
  });

  it("takes what looks like an option for a word where it finds out where it is", async () => {
    const script = readFileSync(await scriptFor("fish"), "utf8");
    // Without `--` fish itself would read the options that are on the line.
    expect(script).toContain("switch (string join -- ' ' $at $word)");
  });
});

describe("headgate completion", () => {
  it.each(shells.map((shell) => ({ shell })))("prints what $shell parses", async ({ shell }) => {
    const path = await scriptFor(shell);
    // fish has the same switch by another name.
    const words = shell === "fish" ? ["--no-execute", path] : ["-n", path];
    if (!isInstalled(shell)) return;
    const ran = spawnSync(shell, words, { encoding: "utf8" });
    expect([ran.status, ran.stderr]).toEqual([0, ""]);
  });

  it("refuses another shell with the ones that there are", async () => {
    let err = "";
    const output = {
      out: () => {},
      err: (text: string) => {
        err += text;
      },
    };
    expect(await runCli(["completion", "tcsh"], output)).toBe(2);
    expect(err).toContain("bash, zsh, fish");
  });
});
