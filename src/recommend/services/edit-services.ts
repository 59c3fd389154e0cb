import { editText, type TextPath } from "../../policy/edit/edit-text.js";
import { findService, findSpec } from "../../policy/edit/limit-places.js";
import type { PolicyText } from "../../policy/parse.js";
import type { ServiceRecommendation, ServiceSetting } from "./service-recommendation.js";

/** Texts of a policy after an edit, or a sentence that says why they cannot be edited. */
export type EditedServices =
  | { readonly kind: "edited"; readonly sources: readonly PolicyText[] }
  | { readonly kind: "problem"; readonly message: string };

/** Settings to write. */
interface WrittenServices {
  readonly services: readonly ServiceRecommendation[];
  /** Settings below `proxies`. */
  readonly overload: readonly ServiceSetting[];
  /** Whether optional settings are written, too. */
  readonly isFixed: boolean;
}

/**
 * Writes settings into the policy's text, each with a comment about its origin. Blocks that the
 * policy switches off stay off.
 */
export function editServices(
  sources: readonly PolicyText[],
  { services, overload, isFixed }: WrittenServices,
): EditedServices {
  let edited: EditedServices = { kind: "edited", sources };
  const writeAll = (
    settings: readonly ServiceSetting[],
    find: (texts: readonly PolicyText[]) => Place | undefined,
  ): void => {
    const written = settings.filter(({ use }) => isFixed || use === "write");
    for (const setting of written) {
      // A block that gets values does not have to be written as an empty block first.
      if (written.some(({ path }) => path.startsWith(`${setting.path}.`))) continue;
      if (edited.kind === "problem") return;
      const place = find(edited.sources);
      if (place !== undefined) edited = write(edited.sources, place, setting);
    }
  };
  for (const { observations, settings } of services) {
    writeAll(settings, (texts) => findService(texts, observations.service));
  }
  const proxies = overload.map((one) => ({ ...one, path: `proxies.${one.path}` }));
  writeAll(proxies, findSpec);
  return edited;
}

type Place = Pick<NonNullable<ReturnType<typeof findService>>, "source" | "path" | "value">;

function write(
  sources: readonly PolicyText[],
  { source, path: from, value }: Place,
  setting: Pick<ServiceSetting, "path" | "value" | "why">,
): EditedServices {
  const names = setting.path.split(".");
  const leaf = names.pop() ?? "";
  let [text, path]: [string, TextPath] = [source.text, from];
  let block: unknown = value;
  for (const name of names) {
    const inner = fieldOf(block, name);
    if (inner === undefined) {
      const added = editText(text, { kind: "set", path, entries: [{ name, value: "{}" }] });
      if (added.kind === "problem") return added;
      text = added.text;
    } else if (typeof inner !== "object") return { kind: "edited", sources };
    path = [...path, name];
    block = inner;
  }
  const entry = { name: leaf, value: String(setting.value), comment: setting.why };
  const changed = editText(text, { kind: "set", path, entries: [entry] });
  if (changed.kind === "problem") return changed;
  const edited = sources.map((one) => (one === source ? { ...one, text: changed.text } : one));
  return { kind: "edited", sources: edited };
}

function fieldOf(value: unknown, name: string): unknown {
  const isMap = typeof value === "object" && value !== null && !Array.isArray(value);
  return isMap && Object.hasOwn(value, name) ? Reflect.get(value, name) : undefined;
}
