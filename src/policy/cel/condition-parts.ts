import type { ASTNode } from "@marcbachmann/cel-js";
import { isKeyOf } from "../../core/base/key-of.js";
import { isHeaders } from "./condition-alternatives.js";
import {
  characterCount,
  comparisons,
  joinReaders,
  lowerAscii,
  mapOne,
  mapTwo,
  type PartReader,
  textTests,
} from "./part-readers.js";
import { type FactField, factFields } from "./request-facts.js";

/** Why a condition is refused, and the part that is the cause. */
interface PartRefusal {
  readonly kind: "unsupported" | "costly" | "headerName";
  readonly node: ASTNode;
  readonly message: string;
  readonly expected: string;
  readonly suggestion?: string;
}

/**
 * Maximum number of readers of one condition: each runs once for a request. `exists` and `all`
 * count their test once for each item of the list.
 */
export const conditionStepsMax = 256;

/** Names of list items, and their readers. */
type Names = ReadonlyMap<string, PartReader>;

const noNames: Names = new Map();

/** A header's name. Source: RFC 9110 section 5.1, in lower case as in HTTP/2. */
const headerNamePattern = /^:?[a-z0-9!#$%&'*+.^_`|~-]+$/;

/**
 * Converts the tree of a type-checked condition to readers. The supported subset of CEL costs at
 * most the request's own length in each step: no arithmetic that makes texts longer, no regular
 * expressions, and no loops except over literal lists, which are unrolled.
 *
 * It also replaces the library's evaluator for three reasons: a missing header costs no exception
 * (8 us), the headers that a condition reads are known, and nothing in it can throw.
 */
export class ConditionParts {
  /** Headers that the condition reads. */
  readonly headerNames = new Set<string>();
  /** Attributes that the condition reads. */
  readonly attributeNames = new Set<string>();
  #refusal: PartRefusal | undefined;
  #stepCount = 0;

  /** The first part that is not supported. */
  get refusal(): PartRefusal | undefined {
    return this.#refusal;
  }

  /** Returns the reader of a part; undefined, with a `refusal`, if any of it is not supported. */
  read(node: ASTNode, names: Names = noNames): PartReader | undefined {
    if (this.#refusal !== undefined) return undefined;
    this.#stepCount += 1;
    if (this.#stepCount > conditionStepsMax) {
      return this.#refuse(node, {
        kind: "costly",
        message: "the condition takes too many evaluation steps",
        expected: `at most ${conditionStepsMax} steps, counting those for each item of a list`,
      });
    }
    switch (node.op) {
      case "value":
        return this.#literal(node, node.args);
      case "id":
        return names.get(node.args) ?? this.#unsupported(node, `"${node.args}" as a whole`);
      case ".":
      case "[]":
        return this.#field(node);
      case "call":
        return this.#call(node, names);
      case "rcall":
        return this.#method(node, names);
      case "&&":
      case "||":
        return this.#junction(node, names);
      case "!_":
        return mapOne(this.read(node.args, names), (value) => value !== true);
      case "?:":
        return this.#choice(node.args, names);
      case "in":
        return this.#membership(node.args, names);
      case "==":
      case "!=":
      case "<":
      case "<=":
      case ">":
      case ">=":
        return this.#comparison(node, names);
      default:
        return this.#unsupported(node, operatorWords.get(node.op) ?? "this");
    }
  }

  #literal(node: ASTNode, value: unknown): PartReader | undefined {
    if (typeof value === "string" || typeof value === "boolean") return () => value;
    const number = typeof value === "bigint" ? Number(value) : Number.NaN;
    return Number.isSafeInteger(number)
      ? () => number
      : this.#unsupported(
          node,
          "a value that is not a string, a boolean or a whole number below 2^53",
        );
  }

  /** Reads `request.path`, `request.headers["x-user"]`. */
  #field(node: AccessNode): PartReader | undefined {
    const [owner, key] = node.args;
    if (isHeaders(owner)) {
      const name = headerKey(key);
      if (name === undefined) return this.#unsupported(node, "a header name that is computed");
      return this.#header(node, name);
    }
    const field = node.op === "." ? findField(owner, node.args[1]) : undefined;
    if (field === undefined) return this.#unsupported(node, "this way to access a field");
    if (field.header !== undefined) this.headerNames.add(field.header);
    if (field.attribute !== undefined) this.attributeNames.add(field.attribute);
    return field.read;
  }

  #header(node: ASTNode, name: string): PartReader | undefined {
    if (!headerNamePattern.test(name)) {
      const lower = name.toLowerCase();
      return this.#refuse(node, {
        kind: "headerName",
        message: "this is not a valid header name",
        expected: "a header name in lower case, as Envoy sends it",
        ...(headerNamePattern.test(lower) && { suggestion: lower }),
      });
    }
    this.headerNames.add(name);
    return ({ headers }) => headers.get(name);
  }

  /** Reads `has(request.headers.x)`, `size(request.path)`. */
  #call(node: CallNode, names: Names): PartReader | undefined {
    const [name, [first]] = node.args;
    if (first !== undefined && name === "size") return this.#size(first, names);
    if (first === undefined || name !== "has") return this.#unsupported(node, `${name}()`);
    const reader = this.read(first, names);
    return reader && ((facts) => reader(facts) !== undefined);
  }

  #size(node: ASTNode, names: Names): PartReader | undefined {
    return mapOne(this.read(node, names), (value) => characterCount(String(value)));
  }

  /** Reads `request.path.startsWith("/a")`, `["/a", "/b"].exists(p, ...)`. */
  #method(node: MethodNode, names: Names): PartReader | undefined {
    const [name, owner, [first, second]] = node.args;
    if (first === undefined && name === "size") return this.#size(owner, names);
    if (first === undefined && name === "lowerAscii") {
      return mapOne(this.read(owner, names), (value) => lowerAscii(String(value)));
    }
    const test = textTests.get(name);
    if (test !== undefined && first !== undefined) {
      // A search for one caller's text in another may cost the product of their lengths.
      if (name === "contains" && first.op !== "value" && first.op !== "id") {
        return this.#unsupported(first, "a search string that is not a literal");
      }
      return mapTwo(this.read(owner, names), this.read(first, names), (whole, part) =>
        test(String(whole), String(part)),
      );
    }
    const isQuantifier = name === "exists" || name === "all";
    if (isQuantifier && owner.op === "list" && first?.op === "id" && second !== undefined) {
      return this.#quantifier(
        { isAny: name === "exists", list: owner, name: first.args, test: second },
        names,
      );
    }
    return this.#unsupported(
      node,
      isQuantifier ? `${name}() on something that is not a list` : `${name}()`,
    );
  }

  /** Unrolls a list, as if each item were written out: `a || b || c`, `a && b && c`. */
  #quantifier({ isAny, list, name, test }: Quantifier, names: Names): PartReader | undefined {
    let whole: PartReader | undefined = () => !isAny;
    for (const item of list.args) {
      const reader = this.#item(item);
      const one = reader && this.read(test, new Map([...names, [name, reader]]));
      whole = joinReaders(whole, one, isAny);
    }
    return whole;
  }

  #junction(node: JunctionNode, names: Names): PartReader | undefined {
    const [left, right] = node.args;
    return joinReaders(this.read(left, names), this.read(right, names), node.op === "||");
  }

  #choice([test, yes, no]: ChoiceArgs, names: Names): PartReader | undefined {
    const readers = [this.read(test, names), this.read(yes, names), this.read(no, names)] as const;
    const [testReader, yesReader, noReader] = readers;
    if (testReader === undefined || yesReader === undefined || noReader === undefined) {
      return undefined;
    }
    return (facts) => {
      const value = testReader(facts);
      if (value === undefined) return undefined;
      return value === true ? yesReader(facts) : noReader(facts);
    };
  }

  /** Reads `"x-user" in request.headers`, `request.method in ["GET", "HEAD"]`. */
  #membership([item, whole]: PairArgs, names: Names): PartReader | undefined {
    if (isHeaders(whole)) {
      const name = headerKey(item);
      if (name === undefined) return this.#unsupported(item, "a header name that is computed");
      const reader = this.#header(item, name);
      return reader && ((facts) => reader(facts) !== undefined);
    }
    if (whole.op !== "list")
      return this.#unsupported(whole, "`in` on something that is not a list");
    const values = new Set<unknown>();
    for (const each of whole.args) {
      if (this.#item(each) === undefined) return undefined;
      values.add(typeof each.args === "bigint" ? Number(each.args) : each.args);
    }
    return mapOne(this.read(item, names), (value) => values.has(value));
  }

  /** Reads a list item: a literal, because another item would be computed for each request. */
  #item(node: ASTNode): PartReader | undefined {
    if (node.op === "value") return this.read(node);
    return this.#unsupported(node, "a list item that is not a literal");
  }

  #comparison(node: ComparisonNode, names: Names): PartReader | undefined {
    const [left, right] = node.args;
    return mapTwo(this.read(left, names), this.read(right, names), comparisons[node.op]);
  }

  #unsupported(node: ASTNode, what: string): undefined {
    return this.#refuse(node, {
      kind: "unsupported",
      message: `conditions do not support ${what}`,
      expected:
        "fields of request and source, strings, whole numbers, lists; == != < <= > " +
        ">= in && || ! ?:, startsWith, endsWith, contains, lowerAscii, size, has, " +
        "exists, all",
    });
  }

  #refuse(node: ASTNode, refusal: Omit<PartRefusal, "node">): undefined {
    this.#refusal ??= { node, ...refusal };
    return undefined;
  }
}

type NodeOf<Op extends ASTNode["op"]> = Extract<ASTNode, { readonly op: Op }>;
type AccessNode = NodeOf<"."> | NodeOf<"[]">;
type CallNode = NodeOf<"call">;
type MethodNode = NodeOf<"rcall">;
type JunctionNode = NodeOf<"&&"> | NodeOf<"||">;
type ComparisonNode =
  | NodeOf<"==">
  | NodeOf<"!=">
  | NodeOf<"<">
  | NodeOf<"<=">
  | NodeOf<">">
  | NodeOf<">=">;
type PairArgs = NodeOf<"in">["args"];
type ChoiceArgs = NodeOf<"?:">["args"];

interface Quantifier {
  readonly isAny: boolean;
  readonly list: NodeOf<"list">;
  /** Name of the item in `test`. */
  readonly name: string;
  readonly test: ASTNode;
}

const operatorWords: ReadonlyMap<string, string> = new Map([
  ["list", "a list here"],
  ["map", "maps"],
  ...["+", "-", "*", "/", "%", "-_"].map((op) => [op, "arithmetic"] as const),
]);

/** Returns the name of a header that is a literal; undefined if it is computed. */
function headerKey(key: ASTNode | string): string | undefined {
  if (typeof key === "string") return key;
  return key.op === "value" && typeof key.args === "string" ? key.args : undefined;
}

function findField(owner: ASTNode, name: string): FactField | undefined {
  if (owner.op !== "id" || !isKeyOf(factFields, owner.args)) return undefined;
  return factFields[owner.args].get(name);
}
