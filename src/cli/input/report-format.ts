import { Option } from "commander";

/** `-o` of a command that prints a report. The first format is the default. */
export function reportFormatOption(formats: readonly [string, ...string[]]): Option {
  return new Option("-o, --output <format>", "the report format")
    .choices(formats)
    .default(formats[0]);
}
