import { type Node, type Program, parseSync, type VisitorObject, visitorKeys } from "oxc-parser";

// TypeScript 7 has no stable parser for programs, and a check by regular expressions mistakes
// strings for code. oxc-parser reads TypeScript into a typed ESTree in a tenth of a second for the
// whole project, and installs without scripts.

/** Something that breaks a rule of the house, and what to do instead. */
export interface Violation {
  readonly path: string;
  readonly line: number;
  readonly message: string;
}

/** One import, re-export, dynamic import or `import("...")` type. */
export interface ImportEdge {
  readonly specifier: string;
  readonly line: number;
  /** The names that are taken, as the other file exports them; `*` when it may be any. */
  readonly names: readonly string[];
}

/** One exported name; a re-export is an import, and not one of these. */
export interface ExportedName {
  readonly name: string;
  readonly kind: "value" | "type";
  readonly line: number;
  readonly start: number;
}

/** A file that was read into its syntax tree. */
export interface Source {
  readonly path: string;
  readonly text: string;
  readonly lines: readonly string[];
  readonly program: Program;
  /** All nodes, parents before children: collected once, for every rule goes through them. */
  readonly nodes: readonly Node[];
  /** The offset of each line's first character. */
  readonly lineStarts: readonly number[];
  readonly comments: readonly Comment[];
  readonly imports: readonly ImportEdge[];
  readonly exports: readonly ExportedName[];
}

/** A comment without its marks. */
export interface Comment {
  readonly kind: "Line" | "Block";
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

/** Reads one file; throws when it is not TypeScript or JavaScript. */
export function parseSource(path: string, text: string): Source {
  const parsed = parseSync(path, text, { astType: "ts", preserveParens: false });
  const [error] = parsed.errors;
  if (error !== undefined) throw new Error(`${path}: ${error.message}`);
  const lines = text.split("\n");
  const { program } = parsed;
  const source = {
    path,
    text,
    lines,
    lineStarts: startsOf(lines),
    program,
    nodes: nodesOf(program),
    comments: parsed.comments.map(({ type, value, start, end }) => {
      return { kind: type, text: value, start, end };
    }),
  };
  return { ...source, imports: importsOf(source), exports: exportsOf(source) };
}

function startsOf(lines: readonly string[]): readonly number[] {
  const starts: number[] = [];
  let start = 0;
  for (const line of lines) {
    starts.push(start);
    start += line.length + 1;
  }
  return starts;
}

function nodesOf(program: Program): readonly Node[] {
  const nodes: Node[] = [];
  const add = (node: Node): void => {
    nodes.push(node);
    for (const key of visitorKeys[node.type] ?? []) {
      const child: unknown = Reflect.get(node, key);
      for (const one of Array.isArray(child) ? child : [child]) if (one) add(one);
    }
  };
  add(program);
  return nodes;
}

/** The line of an offset into the text, counted from 1. */
export function lineAt({ lineStarts }: Pick<Source, "lineStarts">, offset: number): number {
  let line = 0;
  let above = lineStarts.length;
  while (above - line > 1) {
    const middle = (line + above) >> 1;
    if ((lineStarts[middle] ?? 0) <= offset) line = middle;
    else above = middle;
  }
  return line + 1;
}

/** A violation at a node, a comment or anything else that has an offset. */
export function violationAt(source: Source, start: number, message: string): Violation {
  return { path: source.path, line: lineAt(source, start), message };
}

/** Calls back for the nodes of the whole file, parents before children. */
export function visit({ nodes }: Pick<Source, "nodes">, visitor: VisitorObject): void {
  const handlers = visitor as Readonly<Record<string, ((node: Node) => void) | undefined>>;
  for (const node of nodes) handlers[node.type]?.(node);
}

/** The name of an import or export, which may also be written as a string. */
export function nameOf(node: Node): string {
  if (node.type === "Identifier") return node.name;
  return node.type === "Literal" ? String(node.value) : "";
}

/** The names that a pattern (a variable, a parameter, a destructuring) binds. */
export function boundNames(node: Node | null): readonly string[] {
  switch (node?.type) {
    case "Identifier":
      return [node.name];
    case "ObjectPattern":
      return node.properties.flatMap(boundNames);
    case "Property":
      return boundNames(node.value);
    case "ArrayPattern":
      return node.elements.flatMap(boundNames);
    case "AssignmentPattern":
      return boundNames(node.left);
    case "RestElement":
      return boundNames(node.argument);
    case "TSParameterProperty":
      return boundNames(node.parameter);
    default:
      return [];
  }
}

/** The leftmost name of a call such as `describe.each(rows)(...)`; undefined when there is none. */
export function rootName(node: Node): string | undefined {
  switch (node.type) {
    case "Identifier":
      return node.name;
    case "MemberExpression":
      return rootName(node.object);
    case "CallExpression":
      return rootName(node.callee);
    case "TaggedTemplateExpression":
      return rootName(node.tag);
    default:
      return undefined;
  }
}

function importsOf(source: Pick<Source, "nodes" | "lineStarts">): ImportEdge[] {
  const edges: ImportEdge[] = [];
  const add = (literal: Node | null, names: readonly string[]): void => {
    if (literal?.type !== "Literal" || typeof literal.value !== "string") return;
    edges.push({ specifier: literal.value, line: lineAt(source, literal.start), names });
  };
  visit(source, {
    ImportDeclaration: (node) => {
      add(
        node.source,
        node.specifiers.map((one) => {
          if (one.type === "ImportSpecifier") return nameOf(one.imported);
          return one.type === "ImportDefaultSpecifier" ? "default" : "*";
        }),
      );
    },
    ExportNamedDeclaration: (node) => {
      add(
        node.source,
        node.specifiers.map((one) => nameOf(one.local)),
      );
    },
    ExportAllDeclaration: (node) => add(node.source, ["*"]),
    ImportExpression: (node) => add(node.source, ["*"]),
    TSImportType: (node) => add(node.source, ["*"]),
  });
  return edges;
}

function exportsOf(source: Pick<Source, "lineStarts" | "program">): ExportedName[] {
  const found: ExportedName[] = [];
  for (const node of source.program.body) {
    if (node.type !== "ExportNamedDeclaration" || node.source !== null) continue;
    const line = lineAt(source, node.start);
    const add = (name: string, kind: ExportedName["kind"]): void => {
      found.push({ name, kind, line, start: node.start });
    };
    for (const { exported, exportKind } of node.specifiers) {
      add(nameOf(exported), exportKind === "type" || node.exportKind === "type" ? "type" : "value");
    }
    for (const { name, kind } of declaredNames(node.declaration)) add(name, kind);
  }
  return found;
}

function declaredNames(node: Node | null): readonly Pick<ExportedName, "name" | "kind">[] {
  switch (node?.type) {
    case "VariableDeclaration":
      return node.declarations
        .flatMap(({ id }) => boundNames(id))
        .map((name) => ({ name, kind: "value" }));
    case "FunctionDeclaration":
    case "TSDeclareFunction":
    case "ClassDeclaration":
      return [{ name: node.id?.name ?? "", kind: "value" }];
    case "TSInterfaceDeclaration":
    case "TSTypeAliasDeclaration":
      return [{ name: node.id.name, kind: "type" }];
    default:
      return [];
  }
}
