import { readFileSync } from "node:fs";
import { ownFile } from "./own-file.js";

const unknownVersion = "0.0.0";

/** Returns the version in this program's package, or `0.0.0` if there is no package around it. */
export function readVersion(): string {
  try {
    const file = ownFile("package.json");
    if (file === undefined) return unknownVersion;
    const version: unknown = Reflect.get(Object(JSON.parse(readFileSync(file, "utf8"))), "version");
    return typeof version === "string" ? version : unknownVersion;
  } catch {
    return unknownVersion;
  }
}
