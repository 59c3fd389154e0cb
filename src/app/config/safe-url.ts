/** Whether a host is this machine alone. */
export function isLoopbackHost(host: string): boolean {
  const name = host.toLowerCase().replace(/^\[(.*)\]$/, "$1");
  return name === "localhost" || name === "::1" || /^127(?:\.\d{1,3}){3}$/.test(name);
}

/** What a URL is that `parseSafeUrl` takes. */
export const safeUrlRule =
  "must be an https URL without user and password (http only to this machine)";

/** A URL on the way to which nobody reads or writes; undefined: it is none. */
export function parseSafeUrl(text: string): URL | undefined {
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  if (url.username !== "" || url.password !== "") return undefined;
  if (url.protocol === "https:") return url;
  return url.protocol === "http:" && isLoopbackHost(url.hostname) ? url : undefined;
}
