/** Reports whether a host is only this machine. */
export function isLoopbackHost(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[(.*)\]$/, "$1");
  return name === "localhost" || name === "::1" || /^127(?:\.\d{1,3}){3}$/.test(name);
}

/** Requirement for a URL that `parseSafeUrl` accepts. */
export const safeUrlRule =
  "must be an https URL without user and password (http only to this machine)";

/** Parses a URL whose traffic others cannot read or change. Undefined: it is not one. */
export function parseSafeUrl(text: string): URL | undefined {
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  if (url.username !== "" || url.password !== "") return undefined;
  if (url.protocol === "https:") return url;
  return url.protocol === "http:" && isLoopbackHost(url.hostname) ? url : undefined;
}
