import type { ASTNode } from "@marcbachmann/cel-js";
import { isHeaders } from "./condition-alternatives.js";

/**
 * A condition in the format of Envoy's matchers: `cel.expr.Expr` as JSON.
 *
 * Source: cel.expr, syntax.proto.
 */
export interface CelExpression {
  /** Unique within one expression. */
  readonly id: number;
  readonly const_expr?: CelConstant;
  readonly ident_expr?: { readonly name: string };
  readonly select_expr?: { readonly operand: CelExpression; readonly field: string };
  readonly call_expr?: {
    readonly target?: CelExpression;
    readonly function: string;
    readonly args: readonly CelExpression[];
  };
  readonly list_expr?: { readonly elements: readonly CelExpression[] };
}

/** A literal. Whole numbers are texts, as in the JSON format of 64-bit integers. */
type CelConstant =
  | { readonly string_value: string }
  | { readonly bool_value: boolean }
  | { readonly int64_value: string };

/** Result of converting a condition. */
type WrittenExpression =
  | { readonly kind: "expression"; readonly expression: CelExpression }
  /** Envoy does not support everything that conditions offer. */
  | { readonly kind: "foreign"; readonly node: ASTNode; readonly what: string };

/** Converts a condition that `ConditionParts` accepts to an expression that Envoy evaluates. */
export function expressionOf(node: ASTNode): WrittenExpression {
  const writer = new ExpressionWriter();
  const expression = writer.write(node, noNames);
  const { foreign } = writer;
  return foreign === undefined ? { kind: "expression", expression } : foreign;
}

/** Names of list items, and the items. */
type Names = ReadonlyMap<string, ASTNode>;

const noNames: Names = new Map();

/** Content of an expression without its id. */
type Shapeless = Omit<CelExpression, "id">;

/** Numbers the parts, and keeps the first part that Envoy does not support. */
class ExpressionWriter {
  foreign: Extract<WrittenExpression, { kind: "foreign" }> | undefined;
  #lastId = 0;

  write(node: ASTNode, names: Names): CelExpression {
    const each = (nodes: readonly ASTNode[]): readonly CelExpression[] =>
      nodes.map((one) => this.write(one, names));
    switch (node.op) {
      case "value":
        return this.#part({ const_expr: constantOf(node.args) });
      case "id":
        return this.#name(node.args, names);
      case "list":
        return this.#part({ list_expr: { elements: each(node.args) } });
      case ".":
        return this.#field(node.args[0], node.args[1], names);
      case "[]":
        return this.#call("_[_]", each(node.args));
      case "call":
        return this.#function(node, names);
      case "rcall":
        return this.#method(node, names);
      case "&&":
      case "||":
      case "==":
      case "!=":
      case "<":
      case "<=":
      case ">":
      case ">=":
        return this.#call(`_${node.op}_`, each(node.args));
      case "in":
        return this.#call("@in", each(node.args));
      case "?:":
        return this.#call("_?_:_", each(node.args));
      case "!_":
        return this.#call("!_", [this.write(node.args, names)]);
      default:
        return this.#refuse(node, node.op);
    }
  }

  #part(shape: Shapeless): CelExpression {
    this.#lastId += 1;
    return { id: this.#lastId, ...shape };
  }

  #call(name: string, args: readonly CelExpression[], target?: CelExpression): CelExpression {
    const owner = target === undefined ? {} : { target };
    return this.#part({ call_expr: { ...owner, function: name, args } });
  }

  #name(name: string, names: Names): CelExpression {
    const item = names.get(name);
    return item === undefined ? this.#part({ ident_expr: { name } }) : this.write(item, noNames);
  }

  /** An absent header is an error in both ways of reading it. */
  #field(owner: ASTNode, field: string, names: Names): CelExpression {
    if (isHeaders(owner)) {
      const key = this.#part({ const_expr: { string_value: field } });
      return this.#call("_[_]", [this.write(owner, names), key]);
    }
    if (owner.op === "id" && owner.args === "source" && field === "principal") {
      const operand = this.#part({ ident_expr: { name: "connection" } });
      return this.#part({ select_expr: { operand, field: "uri_san_peer_certificate" } });
    }
    return this.#part({ select_expr: { operand: this.write(owner, names), field } });
  }

  /** Converts `size(request.path)`, and `has(request.headers.x)` to `"x" in request.headers`. */
  #function(node: NodeOf<"call">, names: Names): CelExpression {
    const [name, [first]] = node.args;
    if (first === undefined) return this.#refuse(node, name);
    if (name !== "has") return this.#call(name, [this.write(first, names)]);
    if (first.op !== "." || !isHeaders(first.args[0])) return this.#hasField(first, names);
    const key = this.#part({ const_expr: { string_value: first.args[1] } });
    return this.#call("@in", [key, this.write(first.args[0], names)]);
  }

  /** A field of the request is present if it is not empty. */
  #hasField(node: ASTNode, names: Names): CelExpression {
    const nothing = this.#part({ const_expr: { string_value: "" } });
    return this.#call("_!=_", [this.write(node, names), nothing]);
  }

  #method(node: NodeOf<"rcall">, names: Names): CelExpression {
    const [name, owner, args] = node.args;
    if (name === "exists" || name === "all") return this.#quantifier(node, names);
    if (name === "lowerAscii") return this.#refuse(node, `${name}()`);
    const target = this.write(owner, names);
    if (name === "size") return this.#call(name, [target]);
    const rest = args.map((one) => this.write(one, names));
    return this.#call(name, rest, target);
  }

  /** Unrolls a list, as if each item were written out: `a || b || c`, `a && b && c`. */
  #quantifier(node: NodeOf<"rcall">, names: Names): CelExpression {
    const [name, owner, [item, test]] = node.args;
    if (owner.op !== "list" || item?.op !== "id" || test === undefined) {
      return this.#refuse(node, `${name}()`);
    }
    const isAny = name === "exists";
    const begin = this.#part({ const_expr: { bool_value: !isAny } });
    return owner.args.reduce((whole, value) => {
      const one = this.write(test, new Map([...names, [item.args, value]]));
      return this.#call(isAny ? "_||_" : "_&&_", [whole, one]);
    }, begin);
  }

  #refuse(node: ASTNode, what: string): CelExpression {
    this.foreign ??= { kind: "foreign", node, what };
    return this.#part({});
  }
}

type NodeOf<Op extends ASTNode["op"]> = Extract<ASTNode, { readonly op: Op }>;

function constantOf(value: unknown): CelConstant {
  if (typeof value === "string") return { string_value: value };
  return typeof value === "boolean" ? { bool_value: value } : { int64_value: String(value) };
}
