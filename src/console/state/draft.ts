import { signal } from "@preact/signals";
import type {
  PolicyFile,
  PolicyVersion,
  ValidatePolicyResponse,
} from "../../gen/headgate/admin/v1/admin_pb.js";
import { isPageFile } from "../../policy/waiting-rooms/page-file.js";
import { formatRoute } from "../data/route.js";
import { goTo } from "./location.js";

/** A file of a policy that is edited. */
export type DraftFile = Pick<PolicyFile, "file" | "text">;

/** The user's edits, which are kept while other views are open. */
export interface Draft {
  /** Version on which the draft is based. */
  readonly base: string;
  readonly files: readonly DraftFile[];
}

/** The draft; undefined until something is changed. */
export const draft = signal<Draft | undefined>(undefined);

/** The server's validation of the current draft; undefined while it is requested. */
export const judgement = signal<ValidatePolicyResponse | undefined>(undefined);

/** Reports whether a file contains tests of a policy instead of a part of it. */
export function isTestFile({ file, text }: DraftFile): boolean {
  return /\btests?\.ya?ml$/.test(file) || (!isPageFile(file) && /^tests:/m.test(text));
}

/** Returns the files of a policy without the fields that only messages have. */
export function filesOf(policy: PolicyVersion | undefined): readonly DraftFile[] {
  return policy?.files.map(({ file, text }) => ({ file, text })) ?? [];
}

/** Shortens a version, which is a hash, for tables. */
export function shortVersion(version: string): string {
  return version === "" ? "none" : version.slice(0, 12);
}

/** Opens the editor with other texts of the policy. Tests in the draft are kept. */
export function editWith(files: readonly DraftFile[], active: string | undefined): void {
  const before = draft.peek();
  const tests = before?.files.filter(isTestFile) ?? [];
  judgement.value = undefined;
  draft.value = { base: before?.base ?? active ?? "", files: [...files, ...tests] };
  goTo(formatRoute(["policy"]));
}
