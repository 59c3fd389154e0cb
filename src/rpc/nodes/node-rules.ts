import { type Glob, globMatches } from "../../core/collections/glob.js";

/** Which names in a certificate may act as which Envoys. */
export interface NodeRule {
  /** Matches a URI or DNS name and captures the parts that the templates use. */
  readonly name: RegExp;
  readonly node: NodeTemplate;
  /** Undefined: any cluster. */
  readonly cluster: NodeTemplate | undefined;
}

/** The texts between the `*` of a template. */
type NodeTemplate = readonly TemplateText[];

/** Literal texts, and captured parts of the name. */
type TemplateText = readonly (string | { readonly part: string })[];

/** The parsed rules, or an error message that quotes none of their text. */
type ParsedNodeRules =
  | { readonly kind: "value"; readonly value: readonly NodeRule[] }
  | { readonly kind: "problem"; readonly message: string };

/** Maximum number of rules, and of placeholders in one name. */
export const nodeRulesMax = 1_000;
/** See `nodeRulesMax`. */
export const namePartsMax = 8;

/**
 * Reads rules, `NAME NODE [CLUSTER]` each, with commas or ends of lines between them:
 *
 *     spiffe://shop.example/ns/{ns}/sa/edge  sidecar~*~*.{ns}~*  edge.{ns}
 *     {node}.edge.shop.example               {node}
 *
 * NAME is a URI or a DNS name. `{x}` and `*` stand for one part of it: without `/` in a URI,
 * without `.` in a DNS name. In NODE and CLUSTER, `{x}` is that part, and `*` any text.
 */
export function parseNodeRules(text: string): ParsedNodeRules {
  const lines = text.split(/[,\n]/).map((line) => line.trim());
  const texts = lines.filter((line) => line !== "");
  if (texts.length > nodeRulesMax) return problem(`must be at most ${nodeRulesMax} rules`);
  if (texts.length === 0) return problem("must be rules NAME NODE [CLUSTER]");
  const rules: NodeRule[] = [];
  for (const [i, line] of texts.entries()) {
    const rule = parseRule(line.split(/\s+/));
    if (typeof rule === "string")
      return problem(`must be rules NAME NODE [CLUSTER]; rule ${i + 1} ${rule}`);
    rules.push(rule);
  }
  return { kind: "value", value: rules };
}

/** The node that a stream states. */
export interface SaidNode {
  readonly node: string;
  /** Undefined: not stated. */
  readonly cluster?: string | undefined;
}

/** Whether a name in the certificate may act as this node. */
export function allowsNode(
  rules: readonly NodeRule[],
  names: readonly string[],
  { node, cluster }: SaidNode,
): boolean {
  return somebody(rules, names, (rule, parts) => {
    if (!globMatches(fill(rule.node, parts), node)) return false;
    const isFree = rule.cluster === undefined || cluster === undefined;
    return isFree || globMatches(fill(rule.cluster, parts), cluster);
  });
}

/** Whether any rule matches one of the certificate's names. */
export function allowsName(rules: readonly NodeRule[], names: readonly string[]): boolean {
  return somebody(rules, names, () => true);
}

type NameParts = Readonly<Record<string, string>>;

function somebody(
  rules: readonly NodeRule[],
  names: readonly string[],
  isAllowed: (rule: NodeRule, parts: NameParts) => boolean,
): boolean {
  return rules.some((rule) =>
    names.some((name) => {
      const found = rule.name.exec(name);
      return found !== null && isAllowed(rule, found.groups ?? {});
    }),
  );
}

/** A captured part is literal text, whatever characters it contains. */
function fill(template: NodeTemplate, parts: NameParts): Glob {
  const [first = "", ...rest] = template.map((texts) =>
    texts.map((one) => (typeof one === "string" ? one : (parts[one.part] ?? ""))).join(""),
  );
  const last = rest.pop();
  if (last === undefined) return { first, middles: [] };
  return { first, middles: rest.filter((middle) => middle !== ""), last };
}

/** A rule, or an error message. */
function parseRule(words: readonly string[]): NodeRule | string {
  const [nameText, nodeText, clusterText, more] = words;
  if (nameText === undefined || nodeText === undefined) return "has no NODE";
  if (more !== undefined) return "has more than three words";
  const tokens = nameText.match(tokenPattern) ?? [];
  const wild = tokens.filter(isWild);
  const parts = wild.flatMap((token) => partOf(token) ?? []);
  if (wild.length > namePartsMax) return `has more than ${namePartsMax} parts in NAME`;
  if (new Set(parts).size < parts.length) return "has a part twice in NAME";
  if (tokens.some((token, i) => isWild(token) && isWild(tokens[i + 1] ?? ""))) {
    return "has two parts in NAME without text between them";
  }
  const all = [nameText, nodeText, clusterText ?? ""];
  if (all.some((text) => /[{}]/.test(text.replace(/\{[a-z]\w*\}/gi, "")))) {
    return "has a brace that does not belong to a {part}";
  }
  const [node, cluster] = [nodeText, clusterText].map((text) => text && templateOf(text));
  const used = [node, cluster].flatMap((template) => template || []).flat();
  if (used.some((one) => typeof one !== "string" && !parts.includes(one.part))) {
    return "has a {part} that is not in NAME";
  }
  const any = nameText.includes("://") ? "[^/]+" : "[^.]+";
  const pattern = tokens.map((token) => {
    const part = partOf(token);
    if (part !== undefined) return `(?<${part}>${any})`;
    return token === "*" ? any : token.replace(/[$()*+./?[\\\]^|]/g, "\\$&");
  });
  const name = new RegExp(`^${pattern.join("")}$`, "u");
  return { name, node: node || [], cluster: cluster || undefined };
}

/** A `{part}`, a `*`, or the text between them. */
const tokenPattern = /\{\w+\}|\*|[^{}*]+|[{}]/g;

function isWild(token: string): boolean {
  return token === "*" || partOf(token) !== undefined;
}

function partOf(token: string): string | undefined {
  return /^\{([a-z]\w*)\}$/i.exec(token)?.[1];
}

function templateOf(text: string): NodeTemplate {
  return text.split("*").map((between) =>
    (between.match(tokenPattern) ?? []).map((token) => {
      const part = partOf(token);
      return part === undefined ? token : { part };
    }),
  );
}

function problem(message: string): ParsedNodeRules {
  return { kind: "problem", message };
}
