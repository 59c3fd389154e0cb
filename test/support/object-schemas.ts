import { readObjectSchemas } from "../../src/app/policy/object-schemas.js";
import { formatJsonPath } from "../../src/generate/base/check-problem.js";
import { defaultGenerateOptions } from "../../src/generate/base/generate-options.js";
import type { PlainValue } from "../../src/generate/base/plain-tree.js";
import { ObjectSchemas, type ObjectVersions } from "../../src/generate/check/object-schemas.js";

let shared: ObjectSchemas | undefined;

/**
 * What the product ships of the objects of Kubernetes, Istio and Envoy Gateway; read once a
 * process, since each schema is compiled where it is first needed.
 */
export function readSchemas(): ObjectSchemas {
  shared ??= new ObjectSchemas(readObjectSchemas());
  return shared;
}

/** What is wrong with objects of any making, such as Helm's; a sentence each. */
export function objectProblems(
  schemas: ObjectSchemas,
  object: unknown,
  versions: ObjectVersions = defaultGenerateOptions,
): readonly string[] {
  const plain: PlainValue = JSON.parse(JSON.stringify(object));
  return schemas.problems(plain, versions).map(({ path, message }) => {
    return `${Object(plain)["kind"]} ${formatJsonPath(path)}: ${message}`;
  });
}
