import type { Node } from "oxc-parser";
import { matchesAny } from "./paths.js";
import { castRows, nullRows, statusTables, tokenRows } from "./rules.js";
import { boundNames, rootName, type Source, type Violation, violationAt, visit } from "./source.js";

/** Clocks, timers, randomness, process and console where they do not belong. */
export function checkGlobals(source: Source): Violation[] {
  const rows = tokenRows.filter(({ allowed }) => !matchesAny(allowed, source.path));
  const insteadOf = new Map(
    rows.flatMap(({ tokens, instead }) => tokens.map((token) => [token, instead])),
  );
  const found = source.imports.flatMap(({ specifier, line }) => {
    const instead = insteadOf.get(specifier);
    return instead === undefined
      ? []
      : [{ path: source.path, line, message: `${specifier}: ${instead}` }];
  });
  const bound = ownNames(source);
  const properties = new Set<Node>();
  const report = (node: Node, token: string): void => {
    const instead = insteadOf.get(token);
    if (instead === undefined) return;
    found.push(violationAt(source, node.start, `${token}: ${instead}`));
  };
  visit(source, {
    MemberExpression: (node) => {
      if (node.computed || node.property.type !== "Identifier") return;
      const object = rootName(node.object) ?? "";
      if (object !== "globalThis") properties.add(node.property);
      if (!bound.has(object)) report(node, `${object}.${node.property.name}`);
    },
    Property: (node) => {
      if (!node.computed) properties.add(node.key);
    },
    PropertyDefinition: ({ key }) => void properties.add(key),
    MethodDefinition: ({ key }) => void properties.add(key),
    TSPropertySignature: ({ key }) => void properties.add(key),
    TSMethodSignature: ({ key }) => void properties.add(key),
    TSQualifiedName: ({ right }) => void properties.add(right),
    Identifier: (node) => {
      if (!properties.has(node) && !bound.has(node.name)) report(node, node.name);
    },
  });
  return found;
}

/** Names that the file itself gives a meaning; the global of that name is then out of sight. */
function ownNames(source: Source): ReadonlySet<string> {
  const names = new Set<string>();
  const add = (pattern: Node | null): void => {
    for (const name of boundNames(pattern)) names.add(name);
  };
  const addParameters = (node: { readonly params: readonly Node[] }): void => {
    for (const parameter of node.params) add(parameter);
  };
  visit(source, {
    VariableDeclarator: ({ id }) => add(id),
    FunctionDeclaration: (node) => {
      add(node.id);
      addParameters(node);
    },
    FunctionExpression: addParameters,
    ArrowFunctionExpression: addParameters,
    TSMethodSignature: addParameters,
    TSFunctionType: addParameters,
    ImportDeclaration: (node) => {
      // `vi` comes from an import, and its mocks are still banned.
      if (node.source.value === "vitest") return;
      for (const { local } of node.specifiers) add(local);
    },
  });
  return names;
}

/** `any`, `!`, enums, namespaces and module-level `let`; in src also `null`. */
export function checkTypes(source: Source): Violation[] {
  const found: Violation[] = [];
  const report = (node: Node, message: string): void => {
    found.push(violationAt(source, node.start, message));
  };
  const isDefinite = (node: Node & { readonly definite?: boolean }): void => {
    if (node.definite === true) report(node, "`!`: give it a value, or let it be undefined");
  };
  visit(source, {
    TSAnyKeyword: (node) => report(node, "any: use unknown, and narrow it"),
    TSNonNullExpression: (node) => report(node, "`!`: handle undefined, or assert with a reason"),
    PropertyDefinition: isDefinite,
    VariableDeclarator: isDefinite,
    TSEnumDeclaration: (node) => report(node, "enum: use a union of string literals"),
    TSModuleDeclaration: (node) => {
      if (node.kind === "namespace") report(node, "namespace: use a module");
    },
    TSTypeAssertion: (node) => report(node, "<T>value: narrow with a check"),
  });
  if (!source.path.startsWith("src/")) return found;
  for (const node of source.program.body) {
    const declared = node.type === "ExportNamedDeclaration" ? node.declaration : node;
    if (declared?.type === "VariableDeclaration" && declared.kind !== "const") {
      report(node, "module-level state: let an object with a lifetime own it");
    }
  }
  return [...found, ...checkNull(source)];
}

/** Comparing with null is how a null of someone else ends: `RegExp.exec` answers one. */
function checkNull(source: Source): Violation[] {
  const found: Violation[] = [];
  const compared = new Set<Node>();
  const message = "null: absent is undefined";
  visit(source, {
    BinaryExpression: ({ operator, left, right }) => {
      if (operator === "===" || operator === "!==") compared.add(left).add(right);
    },
    Literal: (node) => {
      if (node.raw !== "null" || compared.has(node)) return;
      found.push(violationAt(source, node.start, message));
    },
    TSNullKeyword: (node) => void found.push(violationAt(source, node.start, message)),
  });
  if (!nullRows.some(({ path }) => path === source.path)) return found;
  if (found.length > 0) return [];
  return [{ path: source.path, line: 1, message: "no null is left; drop its row in nullRows" }];
}

/**
 * `as`, where nothing is decoded. `as const` states no type; `as unknown` only forgets one, unless
 * a second `as` follows it. Tests read answers that they know, so there only the pair is banned.
 */
export function checkCasts(source: Source): Violation[] {
  const casts: Node[] = [];
  const pairs: Node[] = [];
  visit(source, {
    TSAsExpression: (node) => {
      const { typeAnnotation: type, expression } = node;
      if (expression.type === "TSAsExpression") pairs.push(node);
      const isConst =
        type.type === "TSTypeReference" &&
        type.typeName.type === "Identifier" &&
        type.typeName.name === "const";
      if (!isConst && type.type !== "TSUnknownKeyword") casts.push(node);
    },
  });
  if (source.path.startsWith("test/")) {
    const message = "as ... as: build the value so that its type is right";
    return pairs.map(({ start }) => violationAt(source, start, message));
  }
  const allowed = castRows.find(({ path }) => path === source.path)?.count ?? 0;
  if (casts.length === allowed) return [];
  if (casts.length > allowed) {
    const message = `as: ${casts.length} in this file, ${allowed} allowed; narrow with a check`;
    return casts.map(({ start }) => violationAt(source, start, message));
  }
  const message = `${casts.length} \`as\` are left of ${allowed}; lower its row in castRows`;
  return [{ path: source.path, line: 1, message }];
}

/** Exceptions for files that are gone. */
export function checkExceptions(paths: readonly string[]): Violation[] {
  const known = new Set(paths);
  return [...castRows, ...nullRows]
    .filter(({ path }) => !known.has(path))
    .map(({ path }) => ({ path, line: 1, message: "is gone; drop its row in test/tidy/rules.ts" }));
}

/**
 * Statuses of HTTP and of gRPC that src spells out. 200, 400 and 500 are also counts and sizes:
 * they are statuses where something of that name is given or compared.
 */
export function checkStatuses(source: Source): Violation[] {
  if (!source.path.startsWith("src/") || matchesAny(statusTables, source.path)) return [];
  const found: Violation[] = [];
  const report = (node: Node, isStatus: boolean): void => {
    if (node.type !== "Literal") return;
    const code = String(node.value);
    const pattern = isStatus ? /^[2-5][0-9]{2}$/ : /^(?:4(?!00|25)[0-3][0-9]|50[1-4])$/;
    if (!pattern.test(code)) return;
    found.push(violationAt(source, node.start, `${code}: a row of httpStatuses`));
  };
  const isStatusName = (node: Node): boolean =>
    node.type === "Identifier" && /^(?:status|statusCode|httpStatus)$/.test(node.name);
  visit(source, {
    Property: ({ key, value }) => {
      report(value, isStatusName(key));
      const isGrpc = key.type === "Identifier" && key.name === "grpcStatus";
      if (!isGrpc || value.type !== "Literal" || Number(value.value) > 16) return;
      found.push(violationAt(source, value.start, "a row of grpcStatuses"));
    },
    BinaryExpression: ({ left, right, operator }) =>
      report(right, operator.endsWith("==") && isStatusName(left)),
    ArrayExpression: ({ elements: [first, ...rest] }) => {
      const isField = first?.type === "Literal" && first.value === ":status";
      for (const one of [first, ...rest]) if (one) report(one, isField);
    },
    ConditionalExpression: ({ consequent, alternate }) => {
      report(consequent, false);
      report(alternate, false);
    },
    LogicalExpression: ({ right }) => report(right, false),
    CallExpression: ({ arguments: given }) => {
      for (const one of given) report(one, false);
    },
  });
  return found;
}

/** Tests that run alone, or not at all. */
export function checkTestSwitches(source: Source): Violation[] {
  const found: Violation[] = [];
  visit(source, {
    MemberExpression: (node) => {
      if (node.computed || node.property.type !== "Identifier") return;
      const { name } = node.property;
      const root = rootName(node.object) ?? "";
      if (!["it", "test", "describe", "suite"].includes(root)) return;
      if (!["only", "skip", "todo", "skipIf", "runIf"].includes(name)) return;
      const message = `${root}.${name}: every test runs, or is listed as one that could not`;
      found.push(violationAt(source, node.start, message));
    },
  });
  return found;
}

/** Marks of unfinished work in comments. */
export function checkLeftovers(source: Source): Violation[] {
  return source.comments.flatMap((comment) => {
    const mark = /\b(?:TODO|FIXME|XXX|HACK)\b/.exec(comment.text)?.[0];
    if (mark === undefined) return [];
    return [violationAt(source, comment.start, `${mark}: finish it, or say why it is as it is`)];
  });
}
