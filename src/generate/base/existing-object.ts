import { isAlias, isMap, isScalar, isSeq, type ParsedNode } from "yaml";
import type { PolicyText } from "../../policy/parse.js";
import { type Problem, quoteText } from "../../policy/problems/problem.js";
import { ProblemLog } from "../../policy/problems/problem-log.js";
import { SourceText } from "../../policy/problems/source-text.js";
import { type AliasTargets, findAliasTargets } from "../../policy/text/aliases.js";
import { readYaml } from "../../policy/text/yaml-text.js";
import type { JsonPath } from "./check-problem.js";
import { isMergedKind } from "./merge-rules.js";
import { isPlainList, isPlainMap, mapIn, type PlainMap, type PlainValue } from "./plain-tree.js";

/** Maximum total text of all files with objects of the user, in UTF-16 units. */
export const existingCharsMax = 1_048_576;

/** Maximum number of YAML documents in one file with objects of the user. */
export const existingDocumentsMax = 1_000;

/** A cluster object that the user already has, and where it is defined. */
export interface ExistingObject {
  /** API group. Empty for the core group of Kubernetes. */
  readonly group: string;
  readonly kind: string;
  readonly name: string;
  /** Empty if the object names none. */
  readonly namespace: string;
  /** The object without its status and without the metadata that a cluster adds. */
  readonly object: PlainMap;
  /** Returns `file:line:column` of the value at a path, or of its nearest parent that exists. */
  readonly placeOf: (path: JsonPath) => string;
}

/** A problem in a file with objects of the user. */
export interface ExistingProblem extends Omit<Problem, "id"> {
  readonly id: string;
}

/** The result of reading files of objects. */
interface ExistingObjects {
  /** All objects except those that Headgate generated. */
  readonly objects: readonly ExistingObject[];
  readonly problems: readonly ExistingProblem[];
}

/** Reads cluster objects in YAML or JSON. Unpacks lists from `kubectl get -o yaml`. Pure. */
export function readExisting(files: readonly PolicyText[]): ExistingObjects {
  const objects: ExistingObject[] = [];
  const problems: ExistingProblem[] = [];
  let charCount = 0;
  for (const { file, text } of files) {
    charCount += text.length;
    const starts = charCount > existingCharsMax ? [] : documentStarts(text);
    if (starts.length === 0 || starts.length > existingDocumentsMax) {
      problems.push(sizeProblem(file));
      break;
    }
    let firstLine = 0;
    starts.forEach((start, index) => {
      const piece = text.slice(start, starts[index + 1]);
      const reader = new DocumentReader({ file, text: piece, firstLine });
      objects.push(...reader.read());
      problems.push(...reader.problems());
      firstLine += piece.split("\n").length - 1;
    });
  }
  return { objects: objects.filter((one) => !isGenerated(one)), problems };
}

/** Returns the start of each document. A line with `---` separates documents, even in a text. */
function documentStarts(text: string): readonly number[] {
  const marks = [...text.matchAll(/\n---(?=\s|$)/g)].map(({ index }) => index + 1);
  return [0, ...marks];
}

function sizeProblem(file: string): ExistingProblem {
  return {
    file,
    line: 1,
    column: 1,
    id: "HG370",
    message: "the file is too large",
    excerpt: "",
    caret: { start: 0, length: 1 },
    expected: `at most ${existingCharsMax} characters, ${existingDocumentsMax} documents`,
  };
}

const managerLabel = "app.kubernetes.io/managed-by";

function isGenerated({ object }: ExistingObject): boolean {
  return mapIn(mapIn(object, "metadata"), "labels")[managerLabel] === "headgate";
}

/** Names in `metadata` that a cluster sets. */
const notedNames: ReadonlySet<string> = new Set([
  "creationTimestamp",
  "generation",
  "managedFields",
  "resourceVersion",
  "uid",
]);

const appliedAnnotation = "kubectl.kubernetes.io/last-applied-configuration";

/** Returns an object as its user wrote it. */
function written(object: PlainMap): PlainMap {
  const { status: _status, ...rest } = object;
  const kept = Object.entries(mapIn(object, "metadata")).flatMap(([name, value]) => {
    if (notedNames.has(name)) return [];
    if (name !== "annotations" || !isPlainMap(value)) return [[name, value] as const];
    const { [appliedAnnotation]: _applied, ...annotations } = value;
    return Object.keys(annotations).length === 0 ? [] : [[name, annotations] as const];
  });
  return { ...rest, metadata: Object.fromEntries(kept) };
}

/** Reads one document of a file. */
class DocumentReader {
  readonly #source: SourceText;
  readonly #firstLine: number;
  readonly #log = new ProblemLog();
  readonly #own: ExistingProblem[] = [];
  #aliases: AliasTargets = new Map();

  constructor(piece: PolicyText & { readonly firstLine: number }) {
    this.#source = new SourceText(piece, 0);
    this.#firstLine = piece.firstLine;
  }

  problems(): readonly ExistingProblem[] {
    const logged = this.#log.found().problems.map((problem) => {
      return { ...problem, line: problem.line + this.#firstLine };
    });
    return [...logged, ...this.#own];
  }

  read(): readonly ExistingObject[] {
    const yaml = readYaml(this.#source, this.#log);
    if (yaml.kind !== "root") return [];
    if (yaml.hasAliases) {
      const targets = findAliasTargets(yaml.node, this.#source, this.#log);
      if (targets === undefined) return [];
      this.#aliases = targets;
    }
    const value = this.#plain(yaml.node);
    if (value === undefined || this.#log.count > 0) return [];
    return this.#objects(value, yaml.node);
  }

  #objects(value: PlainValue, node: ParsedNode): readonly ExistingObject[] {
    if (isPlainMap(value) && value["kind"] === "List") {
      const items = isPlainList(value["items"]) ? value["items"] : [];
      return items.flatMap((item, index) => {
        return this.#object(item, this.#nodeAt(node, ["items", index]));
      });
    }
    return this.#object(value, node);
  }

  #object(value: PlainValue, node: ParsedNode): readonly ExistingObject[] {
    const object = isPlainMap(value) ? value : {};
    const { apiVersion, kind } = object;
    const { name, namespace = "" } = mapIn(object, "metadata");
    const isNamed = typeof name === "string" && typeof namespace === "string";
    if (typeof apiVersion !== "string" || typeof kind !== "string" || !isNamed) {
      this.#refuse(node, "this is not a Kubernetes object");
      return [];
    }
    const [first = "", version] = apiVersion.split("/");
    const group = version === undefined ? "" : first;
    if (namespace === "" && isMergedKind(group, kind)) {
      this.#refuse(node, `${kind} ${quoteText(name)} has no metadata.namespace`);
      return [];
    }
    return [
      {
        group,
        kind,
        name,
        namespace,
        object: written(object),
        placeOf: (path) => this.#place(this.#nodeAt(node, path)),
      },
    ];
  }

  #refuse(node: ParsedNode, message: string): void {
    const [start] = node.range;
    const { line, column } = this.#source.position(start);
    const { text: excerpt, ...caret } = this.#source.excerpt({ start, end: start + 1 });
    const expected = "objects, each with apiVersion, kind and metadata.name";
    const place = { file: this.#source.file, line: line + this.#firstLine, column };
    this.#own.push({ ...place, id: "HG370", message, excerpt, caret, expected });
  }

  #place(node: ParsedNode): string {
    const { line, column } = this.#source.position(node.range[0]);
    return `${this.#source.file}:${line + this.#firstLine}:${column}`;
  }

  #nodeAt(root: ParsedNode, path: JsonPath): ParsedNode {
    let node = root;
    for (const step of path) {
      const content = this.#content(node);
      if (isSeq<ParsedNode>(content)) node = content.items[Number(step)] ?? node;
      else if (isMap<ParsedNode, ParsedNode | null>(content)) {
        const pair = content.items.find(({ key }) => nameOf(key) === String(step));
        node = pair?.value ?? pair?.key ?? node;
      }
    }
    return node;
  }

  #content(node: ParsedNode): ParsedNode | undefined {
    return isAlias(node) ? this.#aliases.get(node) : node;
  }

  /** Drops nulls, which an API treats as absent. Recursive: the depth is limited before. */
  #plain(node: ParsedNode | null): PlainValue | undefined {
    const content = node === null ? undefined : this.#content(node);
    if (isScalar(content)) {
      const { value } = content;
      if (typeof value === "boolean") return value;
      if (typeof value === "number" && Number.isFinite(value)) return value;
      return value === null ? undefined : String(value);
    }
    if (isSeq<ParsedNode>(content)) return content.items.flatMap((one) => this.#plain(one) ?? []);
    if (!isMap<ParsedNode, ParsedNode | null>(content)) return undefined;
    const entries = new Map<string, PlainValue>();
    const seen = new Set<string>();
    for (const { key, value } of content.items) {
      const name = nameOf(key);
      if (name === undefined || name === "<<") {
        this.#report(key, "HG104", "write the merged settings out in full");
        continue;
      }
      if (seen.has(name)) this.#report(key, "HG103", `${quoteText(name)} is defined twice`);
      seen.add(name);
      const plain = this.#plain(value);
      if (plain !== undefined) entries.set(name, plain);
    }
    return Object.fromEntries(entries);
  }

  #report({ range: [start, end] }: ParsedNode, id: "HG103" | "HG104", message: string): void {
    this.#log.report(this.#source, { start, end }, { id, message });
  }
}

function nameOf(key: ParsedNode): string | undefined {
  return isScalar(key) ? String(key.value) : undefined;
}
