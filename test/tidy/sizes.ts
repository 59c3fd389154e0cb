import type { Node } from "oxc-parser";
import { parameterRows, sizeMax } from "./rules.js";
import { lineAt, rootName, type Source, type Violation, violationAt, visit } from "./source.js";

/** Files, functions, lines and parameter lists that are too long. */
export function checkSizes(source: Source): Violation[] {
  return [
    ...checkFileLength(source),
    ...checkLineLengths(source),
    ...checkFunctionLengths(source),
    ...checkParameters(source),
  ];
}

function checkFileLength({ path, lines }: Source): Violation[] {
  const linesMax = path.startsWith("test/") ? sizeMax.testLines : sizeMax.sourceLines;
  const lineCount = lines.at(-1) === "" ? lines.length - 1 : lines.length;
  if (lineCount <= linesMax) return [];
  const message = `${lineCount} lines, at most ${linesMax}; split it by concept`;
  return [{ path, line: linesMax + 1, message }];
}

/** Lines as long as the URL or the path in them. */
const unbreakable = /https?:\/\/|^import .* from "/;

function checkLineLengths({ path, lines }: Source): Violation[] {
  return lines.flatMap((text, i) => {
    if (text.length <= sizeMax.lineColumns || unbreakable.test(text)) return [];
    const columnCount = [...text].length;
    if (columnCount <= sizeMax.lineColumns) return [];
    const message = `${columnCount} columns, at most ${sizeMax.lineColumns}; break the line`;
    return [{ path, line: i + 1, message }];
  });
}

/** What `describe` is given is a list of tests, and not a function to be read as one. */
function checkFunctionLengths(source: Source): Violation[] {
  const found: Violation[] = [];
  const lists = new Set<Node>();
  const check = (node: Node): void => {
    if (lists.has(node)) return;
    const lineCount = lineAt(source, node.end) - lineAt(source, node.start) + 1;
    if (lineCount <= sizeMax.functionLines) return;
    const message = `a function of ${lineCount} lines, at most ${sizeMax.functionLines}; split it`;
    found.push(violationAt(source, node.start, message));
  };
  visit(source, {
    CallExpression: (node) => {
      if (rootName(node.callee) !== "describe") return;
      for (const argument of node.arguments) lists.add(argument);
    },
    FunctionDeclaration: check,
    FunctionExpression: check,
    ArrowFunctionExpression: check,
  });
  return found;
}

/** A callback written in the place of an argument has the parameters that its caller gives it. */
function checkParameters(source: Source): Violation[] {
  const found: Violation[] = [];
  const callbacks = new Set<Node>();
  const row = parameterRows.find(({ path }) => path === source.path);
  const most = row?.most ?? sizeMax.positionalParameters;
  const addCallbacks = (node: { readonly arguments: readonly Node[] }): void => {
    for (const argument of node.arguments) callbacks.add(argument);
  };
  const check = (node: Node & { readonly params: readonly Node[] }): void => {
    if (callbacks.has(node)) return;
    const counted = node.params.filter(
      (one) => !(one.type === "Identifier" && one.name === "this"),
    );
    if (counted.length <= most) return;
    const message = `${counted.length} parameters, at most ${most}; name them`;
    found.push(violationAt(source, node.start, `${message} in an options object`));
  };
  visit(source, {
    CallExpression: addCallbacks,
    NewExpression: addCallbacks,
    FunctionDeclaration: check,
    FunctionExpression: check,
    ArrowFunctionExpression: check,
    TSDeclareFunction: check,
    TSEmptyBodyFunctionExpression: check,
    TSMethodSignature: check,
    TSFunctionType: check,
  });
  return found;
}
