/**
 * What action.yml runs: checks and tests a policy, compares it with the base of the pull request,
 * and reports as annotations and a job summary. Plain JavaScript on Node's built-ins, since nothing
 * is installed where it starts. Headgate is the one that was built beside it, or comes by `npx`, in
 * the version of this action.
 *
 * What a policy holds is its author's: it reaches the log escaped, or where no command is read.
 */
import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

/** GitHub shows ten of a kind for each step; the rest is in the log. */
const annotationsMax = 50;

/** GitHub drops a step's summary above 1 MiB. */
const sectionCharsMax = 100_000;

const outputBytesMax = 64 * 1024 * 1024;
const commitPattern = /^[A-Za-z0-9_][A-Za-z0-9_./-]*$/;
const problemPattern = /^(.+?):(\d+):(\d+): (HG\d+ .+)$/gm;

let isFailed = false;
let annotationCount = 0;

main();

function main() {
  const policy = input("policy") || "policy.yaml";
  const folder = mkdtempSync(join(tmpdir(), "headgate-action-"));
  try {
    summarize("Check", checkPolicy(policy));
    const tests = testFiles(policy);
    if (tests.length > 0) summarize("Tests", runTests(tests));
    const base = baseCommit();
    if (base !== "") summarize("Changes", comparePolicy(policy, { base, folder }));
  } catch (error) {
    annotate("error", { message: error.message });
  } finally {
    rmSync(folder, { recursive: true });
  }
  process.exitCode = isFailed ? 1 : 0;
}

/** The check's lines; each problem becomes an annotation. */
function checkPolicy(policy) {
  const { code, out, err } = headgate(["check", "-o", "json", "--", policy]);
  if (!out.startsWith("{")) return complain(err, `headgate check failed with exit code ${code}`);
  const { ok, files, problems, warnings = [] } = JSON.parse(out);
  for (const problem of problems) annotate("error", withHint(problem));
  for (const warning of warnings) annotate("warning", withHint(warning));
  const lines = [...problems, ...warnings].map(({ file, line, column, id, message }) => {
    const place = file === undefined ? "" : `${file}:${line}:${column}: `;
    return `${place}${id} ${message}`;
  });
  const count = problems.length === 1 ? "1 problem" : `${problems.length} problems`;
  return [...lines, ok ? `OK: ${files === 1 ? "1 file" : `${files} files`}.` : `${count}.`];
}

function withHint({ file, line, column, id, message, expected, suggestion, hint }) {
  const more = [
    expected === undefined ? "" : `expected: ${expected}`,
    suggestion === undefined ? "" : `did you mean: ${suggestion}`,
    hint ?? "",
  ];
  const text = [`${id} ${message}`, ...more.filter((part) => part !== "")].join("\n");
  return { file, line, column, message: text };
}

/** Those that are named, else the one beside the policy. */
function testFiles(policy) {
  const named = input("tests")
    .split("\n")
    .map((line) => line.trim());
  if (named.some((line) => line !== "")) return named.filter((line) => line !== "");
  const beside = policy.replace(/\.ya?ml$/, ".tests.yaml");
  return beside !== policy && existsSync(beside) ? [beside] : [];
}

function runTests(paths) {
  const { code, out, err } = headgate(["test", "-o", "json", "--", ...paths]);
  if (!out.startsWith("{")) return complain(err, `headgate test failed with exit code ${code}`);
  return JSON.parse(out).files.flatMap(({ file, outcomes }) => {
    for (const { name, failures } of outcomes) {
      for (const { line, message } of failures) {
        annotate("error", { file, line, message: `${name}: ${message}` });
      }
    }
    return [
      file,
      ...outcomes.flatMap(({ name, failures }) => [
        `  ${failures.length === 0 ? "✓" : "✗"} ${name}`,
        ...failures.map(({ line, message }) => `      line ${line}: ${message}`),
      ]),
    ];
  });
}

/** The commit that a pull request goes to; empty where nothing is compared. */
function baseCommit() {
  const event = process.env.GITHUB_EVENT_PATH ?? "";
  const named = input("base");
  if (named !== "" || event === "" || !existsSync(event)) return named;
  return JSON.parse(readFileSync(event, "utf8")).pull_request?.base?.sha ?? "";
}

function comparePolicy(policy, { base, folder }) {
  if (!commitPattern.test(base)) throw new Error(`base: "${base}" is not a commit`);
  if (git(["cat-file", "-e", `${base}^{commit}`]) === undefined) {
    git(["fetch", "--no-tags", "--depth=1", "origin", base]);
  }
  if (git(["cat-file", "-e", `${base}^{commit}`]) === undefined) {
    annotate("warning", { message: `Not compared: the base commit ${base} cannot be fetched.` });
    return ["Not compared: the base commit cannot be fetched."];
  }
  const before = baseFiles(policy, { base, folder });
  if (before === undefined) return ["A new policy: the base commit does not contain it."];
  const { code, out, err } = headgate(["diff", "--", before, policy]);
  if (code === 0 || code === 4) return out.trimEnd().split("\n");
  // What is wrong with the new one has been told, and the base's is nobody's fault here.
  return ["Not compared: one of the two policies is invalid.", ...err.trimEnd().split("\n")];
}

/** The base's policy, written below a folder; undefined where the base has none. */
function baseFiles(policy, { base, folder }) {
  const path = relative(process.cwd(), policy) || ".";
  const place = join(folder, basename(policy) || "policy");
  if (!existsSync(policy) || !statSync(policy).isDirectory()) {
    const text = git(["show", `${base}:./${path}`]);
    if (text !== undefined) writeFileSync(place, text);
    return text === undefined ? undefined : place;
  }
  const listed = git(["ls-tree", "-z", "--name-only", base, "--", `${path}/`]) ?? "";
  const names = listed.split("\0").filter((name) => /\.ya?ml$/.test(name));
  mkdirSync(place);
  for (const name of names) {
    const text = git(["show", `${base}:./${name}`]) ?? "";
    writeFileSync(join(place, basename(name)), text);
  }
  return names.length === 0 ? undefined : place;
}

/** What a program says that could not do its work, as annotations and lines. */
function complain(text, otherwise) {
  const found = [...text.matchAll(problemPattern)];
  for (const [, file, line, column, message] of found) {
    annotate("error", { file, line, column, message });
  }
  if (found.length === 0) annotate("error", { message: text.trim() || otherwise });
  return text.trimEnd().split("\n");
}

/** Writes an annotation. Source: workflow commands of GitHub Actions. */
function annotate(severity, { file, line, column, message }) {
  isFailed ||= severity === "error";
  annotationCount += 1;
  if (annotationCount > annotationsMax) return;
  const places = Object.entries({ file, line, col: column })
    .filter(([, value]) => value !== undefined)
    .map(
      ([name, value]) =>
        `${name}=${escapeData(value).replaceAll(":", "%3A").replaceAll(",", "%2C")}`,
    );
  const place = places.length === 0 ? "" : ` ${places.join(",")}`;
  process.stdout.write(`::${severity}${place}::${escapeData(message)}\n`);
}

function escapeData(value) {
  return String(value).replaceAll("%", "%25").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
}

/** Shows lines in the log, where no command in them is read, and in the summary, as plain text. */
function summarize(title, lines) {
  const text = lines.join("\n").slice(0, sectionCharsMax);
  const token = randomUUID();
  process.stdout.write(`::stop-commands::${token}\n${title}\n${text}\n::${token}::\n`);
  const { GITHUB_STEP_SUMMARY: summary = "" } = process.env;
  if (summary === "") return;
  const runs = [...text.matchAll(/`+/g)].map(([run]) => run.length);
  const fence = "`".repeat(Math.max(3, ...runs.map((length) => length + 1)));
  appendFileSync(summary, `### Headgate: ${title}\n\n${fence}text\n${text}\n${fence}\n\n`);
}

function headgate(words) {
  const named = input("command")
    .split(" ")
    .filter((word) => word !== "");
  const [program = "", ...args] = named.length > 0 ? named : ownCommand();
  const { status, stdout, stderr, error } = run(program, [...args, ...words]);
  if (error !== undefined) throw new Error(`${program} cannot be started: ${error.message}`);
  return { code: status, out: stdout, err: stderr };
}

/** What git prints; undefined when it fails. */
function git(words) {
  const { status, stdout } = run("git", words);
  return status === 0 ? stdout : undefined;
}

function run(program, words) {
  const stdio = ["ignore", "pipe", "pipe"];
  return spawnSync(program, words, { encoding: "utf8", maxBuffer: outputBytesMax, stdio });
}

/** What was built in this action's checkout, else the package of its version. */
function ownCommand() {
  const built = fileURLToPath(new URL("../dist/cli/main.js", import.meta.url));
  if (existsSync(built)) return [process.execPath, built];
  const manifest = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
  return ["npx", "--yes", `headgate@${manifest.version}`];
}

/** An input of the action. Source: GitHub's runner sets INPUT_ and the name in capitals. */
function input(name) {
  return (process.env[`INPUT_${name.toUpperCase()}`] ?? "").trim();
}
