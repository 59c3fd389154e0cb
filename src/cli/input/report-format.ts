import { Option } from "commander";

/** Returns the option `-o` of a command with a report. The first format is the default. */
export function reportFormatOption(formats: readonly [string, ...string[]]): Option {
  return new Option("-o, --output <format>", "the report format")
    .choices(formats)
    .default(formats[0]);
}
