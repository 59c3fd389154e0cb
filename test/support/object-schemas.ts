import { readObjectSchemas } from "../../src/app/object-schemas.js";
import { formatJsonPath } from "../../src/generate/check/check-problem.js";
import { ObjectSchemas, type ObjectVersions } from "../../src/generate/check/object-schemas.js";
import { usualGenerateOptions } from "../../src/generate/generate-options.js";
import type { PlainValue } from "../../src/generate/plain-tree.js";

/** What the product ships of the objects of Kubernetes, Istio and Envoy Gateway. */
export function readSchemas(): ObjectSchemas {
  return new ObjectSchemas(readObjectSchemas());
}

/** What is wrong with objects of any making, such as Helm's; a sentence each. */
export function objectProblems(
  schemas: ObjectSchemas,
  object: unknown,
  versions: ObjectVersions = usualGenerateOptions,
): readonly string[] {
  const plain: PlainValue = JSON.parse(JSON.stringify(object));
  return schemas.problems(plain, versions).map(({ path, message }) => {
    return `${Object(plain)["kind"]} ${formatJsonPath(path)}: ${message}`;
  });
}
