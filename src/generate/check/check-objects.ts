import type { Document } from "../document.js";
import type { DocumentCheck } from "../generate.js";
import type { GenerateProblem } from "../generator.js";
import { isPlainMap, type PlainValue, plainTree } from "../plain-tree.js";
import { formatJsonPath } from "./check-problem.js";
import type { ObjectSchemas, ObjectVersions } from "./object-schemas.js";

/** Checks all objects of Kubernetes in documents against what their projects publish. */
export function objectCheck(schemas: ObjectSchemas): DocumentCheck {
  return (documents, options) =>
    documents.flatMap((document) => {
      const { kind } = document;
      const hasObjects = kind.format === "yaml" && kind.is === "kubernetes";
      return hasObjects ? checkObjects(document, { schemas, versions: options }) : [];
    });
}

/** What objects are held against. */
interface Against {
  readonly schemas: ObjectSchemas;
  readonly versions: ObjectVersions;
}

function checkObjects(
  { path: file, parts }: Document,
  { schemas, versions }: Against,
): readonly GenerateProblem[] {
  return parts.map(plainTree).flatMap((object) =>
    schemas.problems(object, versions).map(({ id, path, message, hint, severity }) => ({
      id,
      spot: { service: undefined, path: [] },
      message: `${file}: ${titleOf(object)}: ${formatJsonPath(path)}: ${message}`,
      hint,
      severity,
    })),
  );
}

/** As people name objects: `DestinationRule shop/orders`. */
function titleOf(object: PlainValue): string {
  if (!isPlainMap(object)) return "no object";
  const { kind, metadata } = object;
  const { namespace, name } = isPlainMap(metadata) ? metadata : {};
  const names = [namespace, name].filter((one) => typeof one === "string");
  return [kind, names.join("/")].filter((text) => text !== "" && text !== undefined).join(" ");
}
