import type { Tree, TreeMap } from "../base/document.js";
import { type ValueName, valueRow } from "./value-rows.js";
import { fillIn, type ValueCondition, type ValueSource } from "./value-source.js";

/**
 * Delimiters of Helm actions while they are texts of a tree. Neither a policy nor our comments
 * contain private use characters, and YAML writes them unescaped.
 */
const open = "\u{E000}";
const close = "\u{E001}";

/**
 * Returns texts that `templateText` converts to Helm actions. Each names its value by an absolute
 * path, so that it does not depend on its place.
 */
export class TemplateSource implements ValueSource {
  readonly namespace = action(".Release.Namespace | quote");

  text(name: ValueName, around = "@"): Tree {
    return this.joined(around, [name]);
  }

  joined(around: string, names: readonly ValueName[]): Tree {
    const format = JSON.stringify(fillIn(around, () => "%s"));
    const words = names.map((name) => `toString ${printable(name)}`);
    if (around === "@") return action(`${words[0] ?? ""} | quote`);
    const texts = words.map((word) => `(${word})`).join(" ");
    return action(`printf ${format} ${texts} | quote`);
  }

  either(condition: ValueCondition, [first, second]: readonly [Tree, Tree]): Tree {
    const words = [action(`if ${conditionWords(condition)}`), first, action("else"), second];
    return `${words.join("")}${action("end")}`;
  }

  serviceHost(around: string): Tree {
    const format = JSON.stringify(`${around.replace("@", "%s")}.%s.svc.cluster.local`);
    return action(`printf ${format} ${path("name")} .Release.Namespace | quote`);
  }

  number(name: ValueName): Tree {
    return action(`int ${path(name)}`);
  }

  half(name: ValueName, around: string): Tree {
    const format = JSON.stringify(around.replace("@", "%d"));
    return action(`printf ${format} (div (int ${path(name)}) 2) | quote`);
  }

  seconds(names: readonly ValueName[], moreSeconds: number): Tree {
    const sum = names.map((name) => `(int ${path(name)})`).join(" ");
    return action(`add (div (add ${sum} 999) 1000) ${moreSeconds}`);
  }

  collection(name: ValueName): Tree {
    return block(name);
  }

  mapIf(condition: ValueCondition, map: TreeMap): TreeMap {
    // Names in a map must be unique, so the end of a condition names the condition that it ends.
    const words = conditionWords(condition);
    return { [action(`- if ${words}`)]: true, ...map, [action(`- end ${words}`)]: true };
  }

  listIf(condition: ValueCondition, items: readonly Tree[]): readonly Tree[] {
    const words = conditionWords(condition);
    return [action(`- if ${words}`), ...items, action(`- end ${words}`)];
  }

  itemsOf(name: ValueName): readonly Tree[] {
    return this.listIf({ name }, [block(name)]);
  }

  entriesOf(name: ValueName): TreeMap {
    return this.mapIf({ name }, { [block(name)]: true });
  }
}

/** Wraps a whole object in the condition under which it is included. */
export function wrapTemplate(text: string, condition: ValueCondition | undefined): string {
  if (condition === undefined) return text;
  return `{{- if ${conditionWords(condition)} }}\n${text}{{- end }}\n`;
}

const wholeLine = new RegExp(`^( *)(?:- )?${open}- (if .*|end .*)${close}(?:: true)?$`);
const blockLine = new RegExp(`^( *)(.*?)(: |- )?${open}block (.*)${close}(?:: true)?$`);
const inLine = new RegExp(`${open}(.*?)${close}`, "g");

/** Converts the text of a tree with such texts to a template. */
export function templateText(yaml: string): string {
  return yaml.split("\n").map(templateLine).join("\n");
}

function templateLine(line: string): string {
  const [, indent = "", word = ""] = wholeLine.exec(line) ?? [];
  if (word !== "") return `${indent}{{- ${word.startsWith("end") ? "end" : word} }}`;
  const found = blockLine.exec(line);
  if (found === null) return line.replaceAll(inLine, "{{ $1 }}");
  const [, room = "", name = "", separator = "", value = ""] = found;
  // Among other entries or items it is indented like them, otherwise below its name.
  const nameDepth = name.startsWith("- ") ? room.length + 2 : room.length;
  const depth = separator === ": " ? nameDepth + 2 : room.length;
  const before = separator === ": " ? `${room}${name}:\n` : "";
  return `${before}${" ".repeat(depth)}{{- toYaml ${value} | nindent ${depth} }}`;
}

function path(name: ValueName): string {
  return `.Values.${name}`;
}

/** Helm reads numbers as floating point, and writes a million as 1e+06. */
function printable(name: ValueName): string {
  return valueRow(name).kind === "number" ? `(int ${path(name)})` : path(name);
}

function action(words: string): string {
  return `${open}${words}${close}`;
}

function block(name: ValueName): string {
  return action(`block ${path(name)}`);
}

function conditionWords({ name, isNot = false }: ValueCondition): string {
  return isNot ? `not ${path(name)}` : path(name);
}
