import type { BuildOptions, Metafile } from "esbuild";

/** Joins chunks while starts gain by it, and makes all outputs smaller. */
export declare function joinChunks(given: {
  readonly root: string;
  readonly dist: string;
  readonly outputs: Metafile["outputs"];
  readonly starts: readonly { readonly entries: readonly string[]; readonly weight: number }[];
  readonly options: BuildOptions;
}): Promise<void>;
