import type { Document, Tree, TreeMap } from "./document.js";
import type { GenerateProblem } from "./generator.js";

/** Name and namespace of an object. */
export interface ObjectPlace {
  readonly name: string;
  readonly namespace: string;
}

/** Returns an object of a Kubernetes API that has a `spec`. */
export function specObject(
  type: { readonly apiVersion: string; readonly kind: string },
  place: ObjectPlace,
  spec: Tree,
): TreeMap {
  return { ...type, metadata: metadata(place), spec };
}

/** Returns metadata: name, namespace, and the label of objects that Headgate manages. */
export function metadata({ name, namespace }: ObjectPlace): TreeMap {
  return { name, namespace, labels: { "app.kubernetes.io/managed-by": "headgate" } };
}

/** Maximum length of a generated name, in characters: the maximum of a DNS label. */
export const objectNameCharsMax = 63;

/** Converts text to an object name: lower case, digits and `-`, at most `objectNameCharsMax`. */
export function objectName(text: string): string {
  const plain = text.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
  return plain.slice(0, objectNameCharsMax).replaceAll(/^-+|-+$/g, "");
}

/** Returns a document of Kubernetes objects. */
export function objectsDocument(path: string, title: string, parts: readonly Tree[]): Document {
  return { path, title, kind: { format: "yaml", is: "kubernetes" }, parts };
}

/**
 * Returns the documents that are not empty, and a kustomization of them; none if there is an error.
 *
 * @param merged paths of documents that are merged into objects of the user, and so are not applied
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

/** File name that `kustomization` expects in its folder. It is not an object of a cluster. */
export const kustomizationFile = "kustomization.yaml";

function kustomization(resources: readonly string[]): Document {
  return {
    path: kustomizationFile,
    kind: { format: "yaml", is: "values" },
    title: "kubectl apply --server-side -k .",
    parts: [{ apiVersion: "kustomize.config.k8s.io/v1beta1", kind: "Kustomization", resources }],
  };
}
