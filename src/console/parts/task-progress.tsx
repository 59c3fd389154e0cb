import type { SimulatorTask } from "../state/simulator.js";

/** How far a task is, and its end; nothing where none runs. */
export function TaskProgress<T>({
  task,
  label,
}: {
  readonly task: SimulatorTask<T>;
  readonly label: string;
}) {
  const { value: state } = task.state;
  if (state.kind !== "running") return undefined;
  const { ratio, pass } = state;
  return (
    <>
      <button type="button" onClick={() => task.cancel()}>
        Cancel
      </button>
      <progress aria-label={label} value={ratio} />
      <span class="muted">
        {pass === undefined ? "" : `reading ${pass}: `}
        {Math.floor(100 * ratio)} %
      </span>
    </>
  );
}
