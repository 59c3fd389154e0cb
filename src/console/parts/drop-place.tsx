import { useSignal } from "@preact/signals";

/** A place that takes a file, dropped or chosen. */
export function DropPlace({
  text,
  label,
  onFile,
}: {
  readonly text: string;
  readonly label: string;
  readonly onFile: (file: File) => void;
}) {
  const isOver = useSignal(false);
  const take = (file: File | undefined): void => {
    isOver.value = false;
    if (file !== undefined) onFile(file);
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the input inside takes files by keys
    <div
      class={`drop ${isOver.value ? "over" : ""}`}
      onDragOver={(event) => {
        event.preventDefault();
        isOver.value = true;
      }}
      onDragLeave={() => {
        isOver.value = false;
      }}
      onDrop={(event) => {
        event.preventDefault();
        take(event.dataTransfer?.files[0]);
      }}
    >
      <p>{text}</p>
      <label class="button">
        Choose a file
        <input
          class="unseen"
          type="file"
          aria-label={label}
          onChange={(event) => take(event.currentTarget.files?.[0])}
        />
      </label>
    </div>
  );
}
