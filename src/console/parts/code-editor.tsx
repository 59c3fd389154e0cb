import { useEffect, useRef } from "preact/hooks";
import type { SchemaPart } from "../data/policy-schema.js";
import { assetPath } from "../state/browser.js";
import { useElement } from "../state/element.js";
import type { Editor, EditorProblem } from "./editor-core.js";

/** A text to be edited. */
export interface CodeEditorProps {
  /** Another document begins a new editor. */
  readonly name: string;
  readonly text: string;
  /** The text at this moment: what was rendered may be older than what was typed since. */
  readonly readText: () => string;
  readonly label: string;
  readonly isReadOnly: boolean;
  readonly problems: readonly EditorProblem[];
  /** What it completes. */
  readonly schema: "policy-schema" | "scenario-schema";
  readonly onChange: (text: string) => void;
}

async function loadSchema(name: CodeEditorProps["schema"]): Promise<SchemaPart> {
  const response = await fetch(assetPath(name)).catch(() => undefined);
  // Without it there is no completion, and an editor nevertheless.
  const schema: SchemaPart = response?.ok === true ? await response.json() : {};
  return schema;
}

/** The editor; it is loaded when it is first shown. */
export function CodeEditor(props: CodeEditorProps) {
  const { name, text, label, isReadOnly, problems } = props;
  const host = useElement<HTMLDivElement>();
  const editor = useRef<Editor | undefined>(undefined);
  const latest = useRef(props);
  latest.current = props;
  useEffect(() => {
    let isGone = false;
    const open = async (): Promise<void> => {
      const [{ createEditor }, schema] = await Promise.all([
        import("./editor-core.js"),
        loadSchema(latest.current.schema),
      ]);
      if (isGone || !host.current) return;
      editor.current = createEditor(host.current, {
        text: latest.current.readText(),
        label,
        isReadOnly,
        schema,
        onChange: (changed) => latest.current.onChange(changed),
      });
      editor.current.setProblems(latest.current.problems);
    };
    void open();
    return () => {
      isGone = true;
      editor.current?.destroy();
      editor.current = undefined;
    };
  }, [name, isReadOnly]);
  useEffect(() => editor.current?.setText(latest.current.readText()), [text]);
  useEffect(() => editor.current?.setProblems(problems), [problems]);
  return <div class="editor" ref={host} />;
}
