/** Reports whether a file of a policy is a page template, and not a part of the policy itself. */
export function isPageFile(file: string): boolean {
  return file.endsWith(".html");
}

/** Maximum length of a template's file name. Source: Kubernetes, ConfigMap, `data`. */
export const pageFileCharsMax = 253;

/** A file name that is valid in folders and in ConfigMaps. */
export const pageFilePattern = /^[A-Za-z0-9][-._A-Za-z0-9]*\.html$/;

/** Returns the last part of a path. */
export function baseName(file: string): string {
  return file.slice(file.lastIndexOf("/") + 1);
}
