import { showText } from "../data/shown-text.js";
import { ToneIcon } from "./status.jsx";

/** Something wrong in a text. */
export interface ListedProblem {
  readonly id: string;
  readonly file: string;
  readonly line: number;
  readonly column: number;
  readonly message: string;
  readonly hint: string;
}

const shownMax = 20;

/** What is wrong in texts, with the places. */
export function ProblemList({ problems }: { readonly problems: readonly ListedProblem[] }) {
  return (
    <>
      <ul class="findings">
        {problems.slice(0, shownMax).map(({ id, file, line, column, message, hint }) => (
          <li key={`${id}${file}${line}:${column}`} class="bad">
            <ToneIcon tone="bad" />
            <div>
              <p>
                <b>
                  {id} {showText(file.replace(/.*\//, ""))}:{line}:{column}
                </b>{" "}
                {showText(message)}
              </p>
              {hint === "" ? undefined : <p class="muted">{showText(hint)}</p>}
            </div>
          </li>
        ))}
      </ul>
      {problems.length > shownMax ? (
        <p class="muted">and {problems.length - shownMax} more</p>
      ) : undefined}
    </>
  );
}
