import type { LogFormat } from "../../simulate/log-reader.js";

const formats: readonly (readonly [name: LogFormat, title: string])[] = [
  ["auto", "detect"],
  ["envoy", "Envoy's text"],
  ["json", "JSON lines"],
  ["csv", "CSV with a header"],
];

/** What an access log is written in. */
export function LogFormatField({
  value,
  onChange,
}: {
  readonly value: LogFormat;
  readonly onChange: (format: LogFormat) => void;
}) {
  return (
    <label class="field">
      <span>Format</span>
      <select
        value={value}
        onInput={(event) => {
          const chosen = formats.find(([name]) => name === event.currentTarget.value);
          if (chosen !== undefined) onChange(chosen[0]);
        }}
      >
        {formats.map(([name, title]) => (
          <option key={name} value={name}>
            {title}
          </option>
        ))}
      </select>
    </label>
  );
}
