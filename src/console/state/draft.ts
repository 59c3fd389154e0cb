import { signal } from "@preact/signals";
import type {
  PolicyFile,
  PolicyVersion,
  ValidatePolicyResponse,
} from "../../gen/headgate/admin/v1/admin_pb.js";
import { isPageFile } from "../../policy/waiting-rooms/page-file.js";
import { formatRoute } from "../data/route.js";
import { goTo } from "./location.js";

/** A file of a policy, as it is edited. */
export type DraftFile = Pick<PolicyFile, "file" | "text">;

/** What the reader is writing; it is kept while other views are looked at. */
export interface Draft {
  /** The version that it began with. */
  readonly base: string;
  readonly files: readonly DraftFile[];
}

/** The draft; undefined until something is changed. */
export const draft = signal<Draft | undefined>(undefined);

/** What the server says of the draft as it is now; undefined while it is asked. */
export const judgement = signal<ValidatePolicyResponse | undefined>(undefined);

/** Whether a file holds tests of a policy, and no part of it. */
export function isTestFile({ file, text }: DraftFile): boolean {
  return /\btests?\.ya?ml$/.test(file) || (!isPageFile(file) && /^tests:/m.test(text));
}

/** The files of a policy without what only its messages have. */
export function filesOf(policy: PolicyVersion | undefined): readonly DraftFile[] {
  return policy?.files.map(({ file, text }) => ({ file, text })) ?? [];
}

/** A version short enough for a table; versions are hashes. */
export function shortVersion(version: string): string {
  return version === "" ? "none" : version.slice(0, 12);
}

/** Opens the editor with other texts of the policy; tests of the draft stay in it. */
export function editWith(files: readonly DraftFile[], active: string | undefined): void {
  const before = draft.peek();
  const tests = before?.files.filter(isTestFile) ?? [];
  judgement.value = undefined;
  draft.value = { base: before?.base ?? active ?? "", files: [...files, ...tests] };
  goTo(formatRoute(["policy"]));
}
