import { useEffect } from "preact/hooks";
import { useElement } from "../state/element.js";
import { openBox } from "./keyboard.js";
import { navigation } from "./navigation.js";

/** What keys do. */
export function KeyHelp() {
  const dialog = useElement<HTMLDialogElement>();
  useEffect(() => dialog.current?.showModal(), []);
  const rows = [
    ["/", "search for rules, keys, services and views"],
    ...navigation.map(({ key, title }) => [`g ${key}`, title]),
    ["↑ ↓", "from row to row of a table"],
    ["Enter", "open the row"],
    ["Esc", "close a box"],
    ["?", "this list"],
  ];
  return (
    <dialog ref={dialog} aria-label="Keys" onClose={() => (openBox.value = "none")}>
      <h2>Keys</h2>
      <dl class="keys">
        {rows.map(([key = "", what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <footer>
        <button type="button" class="primary" onClick={() => dialog.current?.close()}>
          Close
        </button>
      </footer>
    </dialog>
  );
}
