import type { AskablePart, ServiceDescriptor } from "../policy/services/service-policy.js";
import { askedOnce } from "../policy/services/service-rate-limit.js";

/** A descriptor that somebody wrote on a command line. */
type DescriptorText =
  | { readonly kind: "descriptor"; readonly descriptor: ServiceDescriptor }
  | { readonly kind: "problem"; readonly message: string };

/**
 * Reads the parts of a descriptor with commas between them: `remote_address`, `key=@header` or
 * `key=value`.
 *
 * Example: `plan=free,user=@x-user`.
 */
export function parseDescriptorText(text: string): DescriptorText {
  const parts: AskablePart[] = [];
  for (const word of text.split(",")) {
    const mark = word.indexOf("=");
    if (word === "remote_address") {
      parts.push({ kind: "remoteAddress", key: word });
      continue;
    }
    const [key, value] = [word.slice(0, mark), word.slice(mark + 1)];
    if (mark < 1 || value === "" || value === "@") {
      const message = "write remote_address, key=@header or key=value, with commas between";
      return { kind: "problem", message };
    }
    if (value.startsWith("@")) {
      parts.push({ kind: "header", header: value.slice(1).toLowerCase(), key });
    } else parts.push({ kind: "fixed", key, value });
  }
  return { kind: "descriptor", descriptor: askedOnce(parts) };
}
