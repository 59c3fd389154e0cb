import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ProgramEnvironment, runCli } from "../../src/cli/program.js";

/** What a command printed, and how it ended. */
export interface CliRun {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs a command line in this process. */
export async function captureCli(
  args: readonly string[],
  surroundings: Partial<ProgramEnvironment> = {},
): Promise<CliRun> {
  let out = "";
  let err = "";
  const output = {
    out: (text: string) => {
      out += text;
    },
    err: (text: string) => {
      err += text;
    },
  };
  const code = await runCli(args, output, surroundings);
  return { code, out, err };
}

/** A folder for the files of one test. */
export class CliFolder {
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  static async create(): Promise<CliFolder> {
    return new CliFolder(await mkdtemp(join(tmpdir(), "headgate-cli-")));
  }

  /** Writes a file; answers its path. */
  async write(name: string, content: string | Buffer): Promise<string> {
    const path = join(this.path, name);
    await writeFile(path, content);
    return path;
  }

  remove(): Promise<void> {
    return rm(this.path, { recursive: true });
  }
}
