import { editText, type TextPath } from "../../policy/edit/edit-text.js";
import { findService } from "../../policy/edit/limit-places.js";
import type { PolicyText } from "../../policy/parse.js";
import type { ServiceRecommendation, ServiceSetting } from "./service-recommendation.js";

/** Texts of a policy after an edit, or a sentence why they cannot be edited. */
export type EditedServices =
  | { readonly kind: "edited"; readonly sources: readonly PolicyText[] }
  | { readonly kind: "problem"; readonly message: string };

/**
 * Writes settings into the policy's text, each with a comment that says where it came from. Blocks
 * that the policy switches off stay off.
 *
 * @param uses the settings that are written
 */
export function editServices(
  sources: readonly PolicyText[],
  recommended: readonly ServiceRecommendation[],
  uses: readonly ServiceSetting["use"][],
): EditedServices {
  let edited = sources;
  for (const { observations, settings } of recommended) {
    const written = settings.filter(({ use }) => uses.includes(use));
    for (const setting of written) {
      // A block that gets values needs not be written empty first.
      if (written.some(({ path }) => path.startsWith(`${setting.path}.`))) continue;
      const found = findService(edited, observations.service);
      if (found === undefined) continue;
      const { path, value, source } = found;
      const changed = write(source.text, { at: path, value, setting });
      if (changed.kind === "problem") return changed;
      edited = edited.map((one) => (one === source ? { ...one, text: changed.text } : one));
    }
  }
  return { kind: "edited", sources: edited };
}

interface Place {
  readonly at: TextPath;
  /** What is written there. */
  readonly value: unknown;
  readonly setting: Pick<ServiceSetting, "path" | "value" | "why">;
}

function write(text: string, { at, value, setting }: Place): ReturnType<typeof editText> {
  const names = setting.path.split(".");
  const leaf = names.pop() ?? "";
  let [edited, path, block] = [text, at, value];
  for (const name of names) {
    const inner = fieldOf(block, name);
    if (inner === undefined) {
      const added = editText(edited, { kind: "set", path, entries: [{ name, value: "{}" }] });
      if (added.kind === "problem") return added;
      edited = added.text;
    } else if (typeof inner !== "object") return { kind: "edited", text };
    path = [...path, name];
    block = inner;
  }
  const entry = { name: leaf, value: String(setting.value), comment: setting.why };
  return editText(edited, { kind: "set", path, entries: [entry] });
}

function fieldOf(value: unknown, name: string): unknown {
  const isMap = typeof value === "object" && value !== null && !Array.isArray(value);
  return isMap && Object.hasOwn(value, name) ? Reflect.get(value, name) : undefined;
}
