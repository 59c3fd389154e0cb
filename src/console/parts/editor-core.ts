import {
  autocompletion,
  type CompletionContext,
  type CompletionResult,
  completionKeymap,
} from "@codemirror/autocomplete";
import { history, historyKeymap, indentWithTab, standardKeymap } from "@codemirror/commands";
import { indentUnit } from "@codemirror/language";
import { lintGutter, setDiagnostics } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import {
  Decoration,
  type DecorationSet,
  drawSelection,
  EditorView,
  highlightActiveLine,
  hoverTooltip,
  keymap,
  lineNumbers,
  MatchDecorator,
  type Tooltip,
  ViewPlugin,
  type ViewUpdate,
} from "@codemirror/view";
import { placeAt, type SchemaPart, schemasAt } from "../data/policy-schema.js";

/** A marked problem in the text. */
export interface EditorProblem {
  readonly line: number;
  readonly column: number;
  readonly message: string;
}

/** An editor in a page. */
export interface Editor {
  readonly setText: (text: string) => void;
  readonly setProblems: (problems: readonly EditorProblem[]) => void;
  readonly destroy: () => void;
}

/** Inputs of an editor. */
export interface EditorParts {
  readonly text: string;
  readonly label: string;
  readonly isReadOnly: boolean;
  readonly schema: SchemaPart;
  readonly onChange: (text: string) => void;
}

/**
 * Creates an editor below an element, in a shadow root. Its styles are then objects created by a
 * script, which the page's security policy allows, and not elements, which it does not.
 */
export function createEditor(host: HTMLElement, parts: EditorParts): Editor {
  const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  const { text, label, isReadOnly, schema, onChange } = parts;
  let isOwnChange = false;
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: text,
      extensions: [
        lineNumbers(),
        lintGutter(),
        history(),
        drawSelection(),
        highlightActiveLine(),
        indentUnit.of("  "),
        highlightYaml,
        look,
        autocompletion({ override: [(context) => complete(schema, context)] }),
        hoverTooltip((shown, at) => explain(schema, shown, at)),
        // Escape followed by Tab leaves the editor.
        keymap.of([...completionKeymap, ...standardKeymap, ...historyKeymap, indentWithTab]),
        EditorState.readOnly.of(isReadOnly),
        EditorView.contentAttributes.of({ "aria-label": label }),
        EditorView.lineWrapping,
        EditorView.updateListener.of((update) => {
          if (update.docChanged && !isOwnChange) onChange(update.state.doc.toString());
        }),
      ],
    }),
  });
  return {
    setText: (next) => {
      if (next === view.state.doc.toString()) return;
      isOwnChange = true;
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: next } });
      isOwnChange = false;
    },
    setProblems: (problems) => {
      const { doc } = view.state;
      const marks = problems.map(({ line, column, message }) => {
        const place = doc.line(Math.max(1, Math.min(doc.lines, line)));
        const from = Math.min(place.to, place.from + Math.max(0, column - 1));
        return { from, to: Math.max(from, place.to), severity: "error" as const, message };
      });
      view.dispatch(setDiagnostics(view.state, marks));
    },
    destroy: () => view.destroy(),
  };
}

function complete(schema: SchemaPart, context: CompletionContext): CompletionResult | null {
  const { state, pos, explicit } = context;
  const word = context.matchBefore(/[\w$.-]*/);
  const line = state.doc.lineAt(pos);
  const from = word?.from ?? pos;
  if (!explicit && (word === null || word.from === word.to)) return null;
  const lines = state.doc.toString().split("\n");
  const { path, key } = placeAt(lines, line.number - 1, from - line.from);
  const options =
    key === undefined
      ? schemasAt(schema, path).flatMap(({ properties = {} }) =>
          Object.entries(properties).map(([label, part]) => ({
            label,
            apply: `${label}: `,
            type: "property",
            info: part.description ?? "",
          })),
        )
      : schemasAt(schema, [...path, key]).flatMap((part) =>
          (part.enum ?? []).map((value) => ({ label: String(value), type: "enum" })),
        );
  return options.length === 0 ? null : { from, options };
}

function explain(schema: SchemaPart, view: EditorView, at: number): Tooltip | null {
  const line = view.state.doc.lineAt(at);
  const start = /[\w$.-]*$/.exec(line.text.slice(0, at - line.from))?.[0] ?? "";
  const from = at - start.length;
  const key = /^[\w$.-]+(?=:)/.exec(line.text.slice(from - line.from))?.[0];
  if (key === undefined) return null;
  const lines = view.state.doc.toString().split("\n");
  const { path } = placeAt(lines, line.number - 1, from - line.from);
  const found = schemasAt(schema, [...path, key]);
  const texts = [...new Set(found.flatMap(({ description }) => description ?? []))];
  const values = found.flatMap((part) => part.enum ?? []);
  if (texts.length === 0) return null;
  return {
    pos: from,
    end: from + key.length,
    above: true,
    create: () => {
      const dom = document.createElement("div");
      dom.className = "hg-doc";
      dom.textContent = [
        ...texts,
        ...(values.length > 0 ? [`One of: ${values.join(", ")}`] : []),
      ].join("\n");
      return { dom };
    },
  };
}

const marks = {
  comment: Decoration.mark({ class: "hg-comment" }),
  key: Decoration.mark({ class: "hg-key" }),
  scalar: Decoration.mark({ class: "hg-scalar" }),
  text: Decoration.mark({ class: "hg-text" }),
};

/** Tokens of YAML in policies. A complete grammar would be a twentieth of the console's size. */
const words = new MatchDecorator({
  regexp: new RegExp(
    [
      "(?<=^|\\s)#.*",
      '"(?:[^"\\\\]|\\\\.)*"',
      "'(?:[^']|'')*'",
      "[\\w$./-]+(?=:(?:\\s|$))",
      "(?<=[\\s[{,:])(?:\\d[\\w.]*|true|false|null)(?=[\\s,\\]}]|$)",
    ].join("|"),
    "g",
  ),
  decoration: ([word = ""]) => {
    if (word.startsWith("#")) return marks.comment;
    if (/^["']/.test(word)) return marks.text;
    return /^(?:\d|true$|false$|null$)/.test(word) ? marks.scalar : marks.key;
  },
});

class YamlHighlighter {
  decorations: DecorationSet;

  constructor(view: EditorView) {
    this.decorations = words.createDeco(view);
  }

  update(update: ViewUpdate): void {
    this.decorations = words.updateDeco(update, this.decorations);
  }
}

const highlightYaml = ViewPlugin.fromClass(YamlHighlighter, {
  decorations: ({ decorations }) => decorations,
});

const look = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "var(--panel)", fontSize: "13.5px" },
  "&.cm-focused": { outline: "2px solid var(--accent)" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.5" },
  ".cm-content": { caretColor: "var(--text)" },
  ".cm-gutters": {
    color: "var(--muted)",
    backgroundColor: "var(--panel)",
    borderRight: "1px solid var(--line)",
  },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--raised)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "var(--notice-ground) !important",
  },
  ".cm-tooltip": {
    color: "var(--text)",
    backgroundColor: "var(--panel)",
    border: "1px solid var(--line)",
    borderRadius: "6px",
    maxWidth: "30rem",
  },
  ".cm-tooltip-autocomplete ul li[aria-selected]": {
    color: "var(--on-accent)",
    backgroundColor: "var(--accent)",
  },
  ".cm-completionInfo": { padding: "0.4rem 0.6rem" },
  ".cm-diagnostic": { padding: "0.3rem 0.6rem", borderLeftColor: "var(--bad)" },
  ".hg-comment": { color: "var(--muted)", fontStyle: "italic" },
  ".hg-key": { color: "var(--ink-1)" },
  ".hg-scalar": { color: "var(--ink-4)" },
  ".hg-text": { color: "var(--ink-5)" },
  ".hg-doc": { padding: "0.4rem 0.6rem", whiteSpace: "pre-wrap" },
});
