import type { Document, Tree, TreeMap } from "./document.js";
import type { GenerateProblem } from "./generator.js";

/** What an object is called, and where it is. */
export interface ObjectPlace {
  readonly name: string;
  readonly namespace: string;
}

/** An object of a Kubernetes API that has a `spec`. */
export function specObject(
  type: { readonly apiVersion: string; readonly kind: string },
  place: ObjectPlace,
  spec: Tree,
): TreeMap {
  return { ...type, metadata: metadata(place), spec };
}

/** Name, namespace, and who made it. */
export function metadata({ name, namespace }: ObjectPlace): TreeMap {
  return { name, namespace, labels: { "app.kubernetes.io/managed-by": "headgate" } };
}

/** Longest name that is made, in characters: what a DNS label holds. */
export const objectNameCharsMax = 63;

/** A text as the name of an object: lower case, digits and `-`, at most `objectNameCharsMax`. */
export function objectName(text: string): string {
  const plain = text.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
  return plain.slice(0, objectNameCharsMax).replaceAll(/^-+|-+$/g, "");
}

/** A file of objects. */
export function objectsDocument(path: string, title: string, parts: readonly Tree[]): Document {
  return { path, title, kind: { format: "yaml", is: "kubernetes" }, parts };
}

/**
 * Those that hold something, and a kustomization of them; none where something is wrong.
 *
 * @param merged paths of what goes into objects of the user's, and is not applied
 */
export function filledDocuments(
  documents: readonly Document[],
  problems: readonly GenerateProblem[],
  merged: readonly string[] = [],
): readonly Document[] {
  if (problems.some(({ severity }) => severity === "error")) return [];
  const filled = documents.filter(({ parts }) => parts.length > 0);
  const applied = filled.map(({ path }) => path).filter((path) => !merged.includes(path));
  return applied.length === 0 ? filled : [...filled, kustomization(applied)];
}

/** What `kustomization` is called in its folder; no object of a cluster. */
export const kustomizationFile = "kustomization.yaml";

function kustomization(resources: readonly string[]): Document {
  return {
    path: kustomizationFile,
    kind: { format: "yaml", is: "values" },
    title: "kubectl apply --server-side -k .",
    parts: [{ apiVersion: "kustomize.config.k8s.io/v1beta1", kind: "Kustomization", resources }],
  };
}
