import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Document } from "../../generate/base/document.js";
import { renderYaml } from "../../generate/base/render.js";
import { hasObjects } from "../../generate/check/check-objects.js";
import type { Target } from "../../generate/targets.js";
import { onPath } from "../../programs/provision.js";
import { runVerifier } from "./verify-envoy.js";

/** A program of another project that reads objects of a target. */
interface Verifier {
  readonly command: string;
  readonly args: (files: readonly string[], all: string) => readonly string[];
  /** What it says at the end where it has taken all objects, and something else is not there. */
  readonly taken?: string;
  /** What it does not look at, as a sentence's end. */
  readonly leavesOut?: string;
}

const verifiers: Partial<Record<Target, Verifier>> = {
  istio: {
    command: "istioctl",
    args: (files) => ["validate", ...files.flatMap((file) => ["-f", file])],
  },
  gateway: {
    command: "egctl",
    args: (_, all) => ["x", "translate", "--from", "gateway-api", "--to", "ir", "-f", all],
    // It has read them all by then; what it would make of them takes the user's Gateway.
    taken: "the GatewayClass resource is required",
    leavesOut: "patches are applied to your Gateway and HTTPRoutes, which are not here",
  },
};

/** What came of asking the program of a target; undefined: there is none for it. */
type ObjectsVerdict =
  | { readonly kind: "missing"; readonly command: string }
  | {
      readonly kind: "asked";
      readonly command: string;
      readonly refusal: string | undefined;
      readonly leavesOut: string | undefined;
    };

/**
 * Lets `istioctl` or `egctl` look at all objects, where PATH has it.
 *
 * @param path the variable PATH
 */
export async function verifyObjects(
  target: Target,
  documents: readonly Document[],
  path: string,
): Promise<ObjectsVerdict | undefined> {
  const verifier = verifiers[target];
  if (verifier === undefined) return undefined;
  const { command, args, taken, leavesOut } = verifier;
  const [program] = onPath(command, { PATH: path });
  if (program === undefined) return { kind: "missing", command };
  const folder = await mkdtemp(join(tmpdir(), "headgate-verify-"));
  try {
    const texts = documents.filter(hasObjects).map((document) => {
      return [document.path, document.parts.map((part) => renderYaml(part))] as const;
    });
    const files: string[] = [];
    for (const [name, parts] of texts) {
      const file = join(folder, name);
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, parts.join("---\n"));
      files.push(file);
    }
    const all = join(folder, "all.yaml");
    await writeFile(all, texts.flatMap(([, parts]) => parts).join("---\n"));
    const refusal = await runVerifier(program, args(files, all), folder);
    const isTaken = taken !== undefined && refusal?.endsWith(taken) === true;
    return { kind: "asked", command, refusal: isTaken ? undefined : refusal, leavesOut };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
