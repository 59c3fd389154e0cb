import { readFileSync } from "node:fs";

/** This program's version, as its package says; `0.0.0` when there is no package around it. */
export function readVersion(): string {
  try {
    const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
    const version: unknown = Reflect.get(Object(JSON.parse(text)), "version");
    return typeof version === "string" ? version : "0.0.0";
  } catch {
    return "0.0.0";
  }
}
