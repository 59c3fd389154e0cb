import { hitsMax } from "../core/limits/limit.js";
import { editText, type TextEdit } from "../policy/edit/edit-text.js";
import { findDeepest, findService } from "../policy/edit/limit-places.js";
import type { PolicyText } from "../policy/parse.js";
import type { Policy } from "../policy/policy.js";
import { quoteText } from "../policy/problems/problem.js";
import type { AskablePart } from "../policy/services/descriptor-parts.js";

/** Texts of a policy after edits, or a sentence that says why they cannot be edited. */
export type EditedPolicy =
  | { readonly kind: "edited"; readonly sources: readonly PolicyText[] }
  | { readonly kind: "problem"; readonly message: string };

/** A limit that the policy does not have yet. */
interface NewRule {
  /** Undefined: the only service of the policy. */
  readonly service: string | undefined;
  readonly parts: readonly AskablePart[];
  /** The period as policies write it. */
  readonly period: string;
}

/** Hits of a new limit before any observation: the maximum of a limit. */
export const unlimitedHits = hitsMax;

/**
 * Adds a rule for a descriptor to a service, with a limit that refuses nothing. Its limit can then
 * be observed and changed like that of any other rule.
 */
export function addRule(
  sources: readonly PolicyText[],
  policy: Pick<Policy, "services">,
  { service, parts, period }: NewRule,
): EditedPolicy {
  const names = policy.services.map(({ name }) => name);
  const name = service ?? (names.length === 1 ? names[0] : undefined);
  const place = name === undefined ? undefined : findService(sources, name);
  if (name === undefined || place === undefined) {
    const which = service === undefined ? "more than one service" : `no service ${service}`;
    const there = names.length === 0 ? "none" : names.map(quoteText).join(", ");
    const what = names.length === 0 ? "no service" : which;
    return { kind: "problem", message: `the policy has ${what}; services: ${there}` };
  }
  const known = policy.services.find((one) => one.name === name)?.rateLimit;
  const domain = known?.domain ?? name;
  const rule = ruleEdit(sources, { domain, parts, period, file: place.source.file });
  if (rule === undefined) {
    const keys = parts.map(({ key }) => key).join(".");
    const message = `${domain}/${keys} has a limit already, which is fitted without this`;
    return { kind: "problem", message };
  }
  const asked = `[${parts.map(partText).join(", ")}]`;
  const serviceEdit: TextEdit =
    known === undefined
      ? {
          kind: "append",
          path: place.path,
          lines: ["rateLimit:", `  domain: ${domain}`, "  descriptors:", `    - ${asked}`],
        }
      : {
          kind: "append",
          path: [...place.path, "rateLimit", "descriptors"],
          lines: [`- ${asked}`],
        };
  return editAll(sources, [{ file: place.source.file, edit: serviceEdit }, rule]);
}

/** Returns the edit that adds the rule. Undefined: there is a limit already. */
function ruleEdit(
  sources: readonly PolicyText[],
  { domain, parts, period, file }: Omit<NewRule, "service"> & { domain: string; file: string },
): FileEdit | undefined {
  const steps = parts.map((part) => ({
    key: part.key,
    ...(part.kind === "fixed" ? { value: part.value } : {}),
  }));
  const found = findDeepest(sources, domain, steps);
  if (found !== undefined) {
    const { source, path, stepCount, names } = found;
    const isThere = names.has("descriptors");
    const rest = parts.slice(stepCount);
    if (rest.length === 0 && (names.has("rate_limit") || names.has("rate_limits"))) {
      return undefined;
    }
    const rule = rest.length === 0 ? [limitLine(period)] : ruleLines(rest, period);
    const lines =
      isThere || rest.length === 0 ? rule : ["descriptors:", ...rule.map((line) => `  ${line}`)];
    const at = isThere && rest.length > 0 ? [...path, "descriptors"] : path;
    return { file: source.file, edit: { kind: "append", path: at, lines } };
  }
  const rule = ruleLines(parts, period);
  const nested = [`- domain: ${domain}`, "  descriptors:", ...rule.map((line) => `    ${line}`)];
  const path = ["spec", "rateLimits"];
  const own = sources.find((one) => one.file === file);
  const probe = editText(own?.text ?? "", { kind: "append", path, lines: nested });
  if (probe.kind === "edited") return { file, edit: { kind: "append", path, lines: nested } };
  const lines = ["rateLimits:", ...nested.map((line) => `  ${line}`)];
  return { file, edit: { kind: "append", path: ["spec"], lines } };
}

function ruleLines(parts: readonly AskablePart[], period: string): readonly string[] {
  const lines = parts.flatMap((part, depth) => {
    const indent = "    ".repeat(depth);
    const value = part.kind === "fixed" ? [`${indent}  value: ${yamlText(part.value)}`] : [];
    const below = depth === parts.length - 1 ? [] : [`${indent}  descriptors:`];
    return [`${indent}- key: ${yamlText(part.key)}`, ...value, ...below];
  });
  const indent = "    ".repeat(parts.length - 1);
  return [...lines, `${indent}  ${limitLine(period)}`];
}

function limitLine(period: string): string {
  return `rate_limit: {period: ${period}, requests_per_unit: ${unlimitedHits}}`;
}

function partText(part: AskablePart): string {
  switch (part.kind) {
    case "remoteAddress":
      return "remote_address";
    case "header":
      return `{header: ${yamlText(part.header)}, as: ${yamlText(part.key)}}`;
    case "fixed":
      return `{value: ${yamlText(part.value)}, as: ${yamlText(part.key)}}`;
  }
}

/** Returns a text plain if every YAML reader takes it for a string, and quoted otherwise. */
function yamlText(text: string): string {
  const isPlain =
    /^[a-z][a-z0-9_-]*$/i.test(text) && !/^(?:true|false|null|yes|no|on|off|y|n)$/i.test(text);
  return isPlain ? text : JSON.stringify(text);
}

/** Edit of one of a policy's files. */
export interface FileEdit {
  readonly file: string;
  readonly edit: TextEdit;
}

/** Applies edits in order, each to the text that the previous ones produced. */
export function editAll(sources: readonly PolicyText[], edits: readonly FileEdit[]): EditedPolicy {
  const texts = new Map(sources.map(({ file, text }) => [file, text]));
  for (const { file, edit } of edits) {
    const edited = editText(texts.get(file) ?? "", edit);
    if (edited.kind === "problem")
      return { kind: "problem", message: `${file}: ${edited.message}` };
    texts.set(file, edited.text);
  }
  return { kind: "edited", sources: [...texts].map(([file, text]) => ({ file, text })) };
}
