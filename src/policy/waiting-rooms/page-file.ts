/** Whether a text of a policy is the template of a page, and no part of the policy itself. */
export function isPageFile(file: string): boolean {
  return file.endsWith(".html");
}

/** Longest name of a template's file, in characters. Source: Kubernetes, ConfigMap, `data`. */
export const pageFileCharsMax = 253;

/** A name that a file has in folders and in ConfigMaps. */
export const pageFilePattern = /^[A-Za-z0-9][-._A-Za-z0-9]*\.html$/;

/** The last part of a path. */
export function baseName(file: string): string {
  return file.slice(file.lastIndexOf("/") + 1);
}
