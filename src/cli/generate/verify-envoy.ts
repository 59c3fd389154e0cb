import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Document } from "../../generate/base/document.js";
import { plainTree } from "../../generate/base/plain-tree.js";
import { bootstrapMessage } from "../../generate/check/find-messages.js";
import type { Program } from "../../programs/programs.js";

/** Timeout of a program, in milliseconds. Envoy takes a tenth of a second for a file. */
const verifyMsMax = 30_000;

/** Maximum length of Envoy's output that is kept, in characters. */
const saidCharsMax = 4_000;

/** Envoy's own verdict on a document. */
interface EnvoyVerdict {
  readonly path: string;
  /** Undefined: Envoy accepts it. */
  readonly refusal: string | undefined;
}

/** Validates each whole configuration with a real Envoy, without starting it. */
export async function verifyWithEnvoy(
  documents: readonly Document[],
  envoy: Program & { readonly kind: "found" },
): Promise<readonly EnvoyVerdict[]> {
  const folder = await mkdtemp(join(tmpdir(), "headgate-verify-"));
  try {
    const verdicts: EnvoyVerdict[] = [];
    for (const { path, kind, parts } of documents) {
      if (kind.format !== "yaml" || kind.is !== "envoy" || kind.message !== bootstrapMessage)
        continue;
      const file = join(folder, `${verdicts.length}.json`);
      await writeFile(file, JSON.stringify(parts[0] === undefined ? {} : plainTree(parts[0])));
      const words = ["--mode", "validate", "--config-path", file, "--log-level", "critical"];
      verdicts.push({ path, refusal: await runVerifier(envoy.path, words, file) });
    }
    return verdicts;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * Runs a program that checks files. Returns its message if it refuses them; undefined otherwise.
 *
 * @param place temporary file or folder, which is removed from the message
 */
export function runVerifier(
  program: string,
  args: readonly string[],
  place: string,
): Promise<string | undefined> {
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      stdio: ["ignore", "pipe", "pipe"],
      timeout: verifyMsMax,
      killSignal: "SIGKILL",
    });
    let said = "";
    const take = (text: Buffer): void => {
      said = (said + text.toString("utf8")).slice(0, saidCharsMax);
    };
    child.stdout.on("data", take);
    child.stderr.on("data", take);
    child.once("error", (error) => resolve(error.message));
    child.once("close", (code, signal) => {
      const words = said.replaceAll(`${place}/`, "").replaceAll(place, "it").trim();
      resolve(code === 0 ? undefined : `${signal ?? `exit code ${code}`}: ${words}`);
    });
  });
}
