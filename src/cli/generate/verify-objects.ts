import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Document } from "../../generate/base/document.js";
import { renderYaml } from "../../generate/base/render.js";
import { hasObjects } from "../../generate/check/check-objects.js";
import type { Target } from "../../generate/targets.js";
import { onPath } from "../../programs/provision.js";
import { runVerifier } from "./verify-envoy.js";

/** A program of another project that checks objects of a target. */
interface Verifier {
  readonly command: string;
  readonly args: (files: readonly string[], all: string) => readonly string[];
  /** Its final message if it accepts all objects, but something else is missing. */
  readonly taken?: string;
  /** What it does not check, as the end of a sentence. */
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
    // By then it has read all objects. To translate them, it needs the user's Gateway.
    taken: "the GatewayClass resource is required",
    leavesOut: "patches are applied to your Gateway and HTTPRoutes, which are not here",
  },
};

/** Result of the target's program; undefined: the target has none. */
type ObjectsVerdict =
  | { readonly kind: "missing"; readonly command: string }
  | {
      readonly kind: "asked";
      readonly command: string;
      readonly refusal: string | undefined;
      readonly leavesOut: string | undefined;
    };

/**
 * Checks all objects with `istioctl` or `egctl`, if it is on PATH.
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
