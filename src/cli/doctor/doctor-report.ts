import type { Style } from "../../app/base/style.js";
import { many } from "../../core/base/many.js";
import type { Diagnostic } from "../../doctor/diagnostic.js";
import { doctorProblemRows } from "../../doctor/doctor-problems.js";
import type { PlainMap } from "../../generate/base/plain-tree.js";

/** Contents of a report. */
interface DoctorReport {
  readonly looks: readonly Diagnostic[];
  /** The Envoy asked, as the user named it. */
  readonly subject: string;
}

/** Returns the report as text. */
export function renderDoctor({ looks, subject }: DoctorReport, style: Style): string {
  const { errors, warnings, passes } = countLooks(looks);
  const lines = looks.flatMap((look) => renderLook(look, style));
  const counts = [many(errors, "error"), many(warnings, "warning")];
  if (passes > 0) counts.push(`${many(passes, "check")} passed`);
  const unseen = looks.length - errors - warnings - passes;
  if (unseen > 0) counts.push(`${unseen} not checked`);
  return [style.bold(subject), ...lines, "", `${counts.join(", ")}.`].join("\n");
}

function renderLook(look: Diagnostic, style: Style): readonly string[] {
  const { id, seen } = look;
  if (look.kind === "pass") return [`  ${style.good("✓")} ${style.dim(id)} ${seen}`];
  if (look.kind === "unseen") return [style.dim(`  - ${id} not checked: ${seen}`)];
  const { title, remedy } = doctorProblemRows[id];
  const mark = look.severity === "error" ? style.bad("✗") : "!";
  const todo = (look.todo ?? remedy).split("\n");
  return [
    `  ${mark} ${style.bold(`${id} ${title}`)} (${look.severity})`,
    `      seen: ${seen}`,
    `      do:   ${todo[0] ?? ""}`,
    ...todo.slice(1).map((line) => `            ${line}`),
  ];
}

/** Returns the report as data. */
export function doctorAsPlain({ looks, subject }: DoctorReport): PlainMap {
  const { errors, warnings, passes } = countLooks(looks);
  return {
    ok: errors === 0,
    subject,
    errors,
    warnings,
    passes,
    looks: looks.map((look): PlainMap => {
      const { title, remedy } = doctorProblemRows[look.id];
      const { kind, id, seen } = look;
      if (look.kind !== "finding") return { id, kind, title, seen };
      return { id, kind, severity: look.severity, title, seen, todo: look.todo ?? remedy };
    }),
  };
}

/** Counts the findings of each kind and the passed checks. */
export function countLooks(looks: readonly Diagnostic[]): {
  readonly errors: number;
  readonly warnings: number;
  readonly passes: number;
} {
  const of = (severity: "error" | "warning"): number =>
    looks.filter((look) => look.kind === "finding" && look.severity === severity).length;
  const passes = looks.filter(({ kind }) => kind === "pass").length;
  return { errors: of("error"), warnings: of("warning"), passes };
}
