import { formatJsonPath } from "../base/check-problem.js";
import type { Document } from "../base/document.js";
import { rated } from "../base/generate-problems.js";
import type { GenerateProblem } from "../base/generator.js";
import { isPlainMap, type PlainValue, plainTree } from "../base/plain-tree.js";
import type { DocumentCheck } from "../generate.js";
import type { ObjectSchemas, ObjectVersions } from "./object-schemas.js";

/** Checks all Kubernetes objects in documents against the schemas that their projects publish. */
export function objectCheck(schemas: ObjectSchemas): DocumentCheck {
  return (documents, options) => {
    const titles = new Set<string>();
    return documents.filter(hasObjects).flatMap((document) => {
      return checkObjects(document, { schemas, versions: options, titles });
    });
  };
}

/** Reports whether a document's parts are Kubernetes objects. */
export function hasObjects({ kind }: Document): boolean {
  return kind.format === "yaml" && kind.is === "kubernetes";
}

/** What objects are checked against. */
interface Against {
  readonly schemas: ObjectSchemas;
  readonly versions: ObjectVersions;
  /** Titles of the previous objects. */
  readonly titles: Set<string>;
}

function checkObjects(
  { path: file, parts }: Document,
  { schemas, versions, titles }: Against,
): readonly GenerateProblem[] {
  return parts.map(plainTree).flatMap((object) => [
    ...titleProblems(file, titleOf(object), titles),
    ...sizeProblems(file, object),
    ...schemas.problems(object, versions).map(({ id, path, message, hint, severity }) => ({
      id,
      spot: { service: undefined, path: [] },
      message: `${file}: ${titleOf(object)}: ${formatJsonPath(path)}: ${message}`,
      hint,
      severity,
    })),
  ]);
}

/**
 * Maximum size of one object, in bytes of JSON: etcd's limit for a request, minus 64 KiB for what a
 * cluster adds to it.
 *
 * Source: etcd, `--max-request-bytes`, 1.5 MiB by default.
 */
const objectBytesMax = 1_507_328;

/** Names of objects are shortened names of services, so two of them may be equal. */
function titleProblems(
  file: string,
  title: string,
  titles: Set<string>,
): readonly GenerateProblem[] {
  const isTaken = titles.has(title);
  titles.add(title);
  if (!isTaken) return [];
  return [
    rated({
      id: "HG458",
      spot: { service: undefined, path: [] },
      message: `${file}: ${title} is defined twice`,
      hint: "give services names that differ in their first 40 characters",
    }),
  ];
}

function sizeProblems(file: string, object: PlainValue): readonly GenerateProblem[] {
  const bytes = new TextEncoder().encode(JSON.stringify(object)).length;
  if (bytes <= objectBytesMax) return [];
  return [
    rated({
      id: "HG459",
      spot: { service: undefined, path: [] },
      message:
        `${file}: ${titleOf(object)} has ${bytes} bytes, and a cluster accepts at ` +
        `most ${String(objectBytesMax)}`,
      hint: "give its services fewer limits, or move some of them to another policy",
    }),
  ];
}

/** Formats the name of an object as people write it: `DestinationRule shop/orders`. */
function titleOf(object: PlainValue): string {
  if (!isPlainMap(object)) return "no object";
  const { kind, metadata } = object;
  const { namespace, name } = isPlainMap(metadata) ? metadata : {};
  const names = [namespace, name].filter((one) => typeof one === "string");
  return [kind, names.join("/")].filter((text) => text !== "" && text !== undefined).join(" ");
}
